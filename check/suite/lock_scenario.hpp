// SPDX-License-Identifier: BSD-3-Clause
// Which lock is checked, with whom, and what they do.
#pragma once

#include <cstdint>
#include <string>

namespace muster::check {

enum class LockVariant : std::uint8_t {
  plain,
  server,    ///< a participant serves until the last client has done
  shutdown,  ///< until the first section is done; if a lock needs one, another server follows
  attended,  ///< as `server`, and the clients are known and used to it from the start
  closing,   ///< as `shutdown`, likewise
  newcomer,  ///< as `attended`, but for the last client
  two,       ///< as `attended`, with two locks, which clients use in turn
  visited,   ///< a server is there, which sleeps, hears of clients, and is told to stop at the end
  yields,    ///< sections give the lock up in between: one that goes round executes, or two
  rings,     ///< no lock, but the request rings of two: clients, and who has either lock
  wraps,     ///< as `rings`, and numbers have one bit
  leaving,   ///< rings: clients post and do not wait, while a server leaves
  sleeps,    ///< rings: clients post and do not wait; a server sleeps when it finds nothing
  combined,  ///< likewise, and a combiner executes one of two requests of the first client
  seats,     ///< rings: threads take a seat, post and end; a server sleeps when it finds nothing
  ends,      ///< rings: clients send what they have kept for a lock, which its owner ends
  // Clients sleep while they wait. Of three the last two do from the start, or soon:
  dozes,     ///< for their answers
  turns,     ///< each for the lock
  alone,     ///< for either, and nobody executes others' requests
  nested,    ///< for their answers, and the first one gives the lock back inside another section
  aided,     ///< for either, and the first one alone executes others' requests
  unaided,   ///< for their answers, and the first one executes nobody's requests
  awaits,    ///< each for the lock; the second one gives it up until the last one has had it
  served,    ///< for either; the first one is a server, and goes one more round
  departs,   ///< for their answers; the first one is a server, and leaves
  visits,    ///< for their answers; the first one has executed many, and has one more section
  stands,    ///< for their answers; who has waited lets others go first once
  together,  ///< for their answers, and both go to sleep at the same time
  inlined,   ///< for their answers, and the first one gives the lock back as C++ does in line
  // And again:
  acquires,   ///< the last client acquires the lock, at once or not, and releases it
  reads,      ///< the last client reads
  shares,     ///< all but the first client read, and that acquires
  successor,  ///< the last participant goes on in the seat of the first client, which ends
  stranger,   ///< as `successor`, with a new ticket: a fault
  // Of `robust`: clients sleep. A slice of sleep is over only when there has been trouble.
  parks,
  dies,         ///< the first client may die at any step; who is told sets right what it has left
  overwritten,  ///< the last participant writes nonsense over the word
  // Of a station, with so many threads of its server:
  aside,        ///< one steps aside while its section blocks, and comes back
  again,        ///< twice: there is a spare then
  interrupted,  ///< spares are woken for nothing, too
  watched,      ///< one blocks, and does not say so
  ahead,        ///< likewise, nobody watches, and its lock is known for that
  roused,       ///< one blocks, and does not say so; and the watchdog may nap for long at first
  overlooked,   ///< likewise, as another one has come back and the first one goes to sleep
  unmade,       ///< no thread can be made at first
  crowd,        ///< two step aside
  ended,        ///< two end the server
  // With so many clients and executors:
  reused,  ///< a lock ends, and another one gets its number
  owners,  ///< clients make locks and end them
  // All but the last client wait for a condition:
  signals,     ///< it signals once for each
  broadcasts,  ///< it signals all at once
  expires,     ///< it signals once, while the time of one of two is over
  // A server's section nests another one, a spare comes, and a third one waits for that server:
  within,  ///< a client, which has the nested one's lock
  across   ///< the nested one's server, in a section that nests, too
};
const char* variant_name(LockVariant variant);

struct LockScenario {
  std::string lock;
  unsigned clients = 2;
  unsigned sections = 1;  ///< of each client
  LockVariant variant = LockVariant::plain;

  std::string name() const;  ///< "mcs, 2 clients, 1 section"
  bool has_server() const;   ///< the last participant
  bool shuts_down() const;
  bool acquires(unsigned client) const;  ///< instead of execute()
  bool reads(unsigned client) const;
  bool has_successor() const;  ///< the last participant
  unsigned known() const;      ///< so many clients from the start
};

}  // namespace muster::check
