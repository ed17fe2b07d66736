# SPDX-License-Identifier: BSD-3-Clause
"""muster.Barrier is held to CPython's own tests of barriers, and to what these do not ask."""

import contextlib
import json
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import sysconfig
import tempfile
import threading
import time
import unittest

import muster

try:
    from test import lock_tests
except ImportError:
    lock_tests = None

LONG = 60  # seconds; no test takes them


def child(code, *arguments):
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )


def wait_for(condition):
    end = time.monotonic() + LONG
    while not condition():
        if time.monotonic() > end:
            raise AssertionError("it does not come about")
        time.sleep(0.001)


class OfTwo(muster.Barrier):
    def __init__(self):
        super().__init__(2)
        self.told = []


def cross(barrier, times, places):
    for _ in range(times):
        places.put(barrier.wait(LONG))


def wait_and_tell(barrier, told):
    try:
        barrier.wait(LONG)
        told.put("passed")
    except muster.BrokenBarrierError:
        told.put("broken")


if lock_tests is not None:

    class OfThreads(lock_tests.BarrierTests):
        barriertype = staticmethod(muster.Barrier)


@unittest.skipIf(lock_tests is None, "package libpython3-testsuite")
class OfPython(unittest.TestCase):
    def test_is_there(self):
        self.assertTrue(OfThreads)


class Threads(unittest.TestCase):
    @unittest.skipUnless(sysconfig.get_config_var("Py_GIL_DISABLED"), "threads take turns")
    def test_at_once_without_the_interpreters_lock(self):
        self.assertFalse(sys._is_gil_enabled())
        code = """
import muster, threading
for _ in range(20):
    barrier = muster.Barrier(8)
    threads = [threading.Thread(target=lambda: [barrier.wait() for _ in range(1000)])
               for _ in range(8)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
print("met")
"""
        said = child(code).communicate(timeout=LONG)
        self.assertEqual(said, ("met\n", ""))

    def test_daemons_when_the_interpreter_ends(self):
        code = """
import muster, threading, time
class AtEnd:
    def __del__(self, sleep=time.sleep): sleep(0.2)  # meanwhile the daemons ask for the interpreter
keep = AtEnd()
def work():
    while True: time.sleep(0.01)
for barrier in muster.Barrier(2), muster.Barrier(2, timeout=0.1), muster.Barrier(1, work):
    threading.Thread(target=barrier.wait, daemon=True).start()
time.sleep(0.05)
"""
        one = child(code)
        self.assertEqual((*one.communicate(timeout=LONG), one.returncode), ("", "", 0))

    def test_of_another_interpreter(self):
        try:
            import _xxsubinterpreters as interpreters
        except ImportError:
            self.skipTest("interpreters are made otherwise here")
        barrier = muster.Barrier(2)
        other = interpreters.create(isolated=False)
        interpreters.run_string(other, f"import sys; sys.path[:] = {sys.path!r}\n" + """
import muster
try:
    muster.Barrier(2).wait(0.01)
except muster.BrokenBarrierError:
    pass
""")
        interpreters.destroy(other)
        with self.assertRaises(threading.BrokenBarrierError):
            barrier.wait(0.01)


class Processes(unittest.TestCase):
    def test_each_way_to_start_them(self):
        for way in multiprocessing.get_all_start_methods():
            with self.subTest(way):
                context = multiprocessing.get_context(way)
                barrier = muster.Barrier(3)
                places = context.SimpleQueue()
                children = [
                    context.Process(target=cross, args=(barrier, 100, places)) for _ in range(2)
                ]
                for one in children:
                    one.start()
                mine = [barrier.wait(LONG) for _ in range(100)]
                theirs = [places.get() for _ in range(200)]
                for one in children:
                    one.join()
                    self.assertEqual(one.exitcode, 0)
                self.assertEqual(sorted(mine + theirs), sorted([0, 1, 2] * 100))

    def test_through_a_queue(self):
        for barrier in muster.Barrier(2), OfTwo():
            pair = multiprocessing.Pipe()
            pair[0].send(barrier)
            same = pair[1].recv()
            self.assertIs(type(same), type(barrier))
            self.assertEqual(vars(same), vars(barrier))
            thread = threading.Thread(target=same.wait)
            thread.start()
            barrier.wait(LONG)
            thread.join()

    def test_by_name(self):
        name = f"test-{os.getpid()}"
        code = "import sys, muster; print(muster.Barrier(3, name=sys.argv[1]).wait(60))"
        children = [child(code, name) for _ in range(3)]  # whoever is first makes it
        places = []
        for one in children:
            out, err = one.communicate()
            self.assertEqual(one.returncode, 0, err)
            places.append(int(out))
        self.assertEqual(sorted(places), [0, 1, 2])

    def test_whose_name_has_other_parties(self):
        name = f"test-{os.getpid()}"
        barrier = muster.Barrier(3, name=name)
        with self.assertRaisesRegex(ValueError, "2 parties, where who made the barrier said 3"):
            muster.Barrier(2, name=name)
        self.assertEqual(barrier.parties, 3)

    def test_one_that_is_killed(self):
        barrier = muster.Barrier(3)
        context = multiprocessing.get_context("fork")
        one = context.Process(target=barrier.wait)
        one.start()
        wait_for(lambda: barrier.n_waiting == 1)
        one.kill()
        one.join()
        with self.assertRaises(muster.BrokenBarrierError):
            barrier.wait(0.01)
        with self.assertRaisesRegex(RuntimeError, "has died"):  # what it was inside of stays so
            barrier.reset()
        self.assertTrue(barrier.broken)

    def test_more_than_have_seats(self):
        barrier = muster.Barrier(1)
        context = multiprocessing.get_context("fork")
        for _ in range(70):
            one = context.Process(target=barrier.wait)
            one.start()
            one.join()
            self.assertEqual(one.exitcode, 0)
        two = muster.Barrier(2)
        for _ in range(70):  # one of which is inside when it is reset
            one = context.Process(target=wait_and_tell, args=(two, told := context.SimpleQueue()))
            one.start()
            wait_for(lambda: two.n_waiting == 1)
            two.reset()
            one.join()
            self.assertEqual(told.get(), "broken")
        self.assertEqual(barrier.wait(), 0)

    def test_ctrl_c(self):
        name = f"test-{os.getpid()}"
        barrier = muster.Barrier(3, name=name)
        code = "import sys, muster; muster.Barrier(3, name=sys.argv[1]).wait()"
        one = child(code, name)
        wait_for(lambda: barrier.n_waiting == 1)
        told = multiprocessing.SimpleQueue()
        other = threading.Thread(target=wait_and_tell, args=(barrier, told))
        other.start()
        wait_for(lambda: barrier.n_waiting == 2)
        one.send_signal(signal.SIGINT)
        _, err = one.communicate(timeout=LONG)
        self.assertIn("KeyboardInterrupt", err)
        other.join()
        self.assertEqual(told.get(), "broken")
        barrier.reset()
        self.assertFalse(barrier.broken)

    def test_a_signals_handler_that_raises_when_all_have_come(self):
        barrier = muster.Barrier(2)
        other = threading.Thread(target=barrier.wait)

        def comes_and_raises(*_):
            other.start()
            other.join()
            raise KeyError("handler")

        before = signal.signal(signal.SIGALRM, comes_and_raises)
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        with self.assertRaisesRegex(KeyError, "handler"):
            barrier.wait(LONG)
        signal.signal(signal.SIGALRM, before)

    def test_resets_among_waits(self):
        barrier = muster.Barrier(3)
        stop = multiprocessing.Event()
        passed = multiprocessing.Value("i", 0)

        def go():
            while not stop.is_set():
                try:
                    barrier.wait(LONG)
                    with passed.get_lock():
                        passed.value += 1
                except muster.BrokenBarrierError:
                    pass

        context = multiprocessing.get_context("fork")
        children = [context.Process(target=go) for _ in range(3)]
        for one in children:
            one.start()
        for _ in range(50):
            before = passed.value
            wait_for(lambda: passed.value > before)
            barrier.reset()
        stop.set()
        while any(one.is_alive() for one in children):
            barrier.abort()
            time.sleep(0.001)
        self.assertEqual([one.exitcode for one in children], [0, 0, 0])


class Arguments(unittest.TestCase):
    def test_that_are_none(self):
        for parties in 0, -1, 65536, 10**12:
            with self.assertRaises((ValueError, OverflowError)):
                muster.Barrier(parties)
        for arguments in ("2",), (2.5,), (2, 7), (2, None, "soon"):
            with self.assertRaises(TypeError):
                muster.Barrier(*arguments)
        for timeout in float("nan"),:
            with self.assertRaises(ValueError):
                muster.Barrier(2, timeout=timeout)
        for name in "", "a/b", "x" * 65:
            with self.assertRaisesRegex(ValueError, "is no name"):
                muster.Barrier(2, name=name)
        with self.assertRaises(ValueError):
            muster.Barrier(2, _fd=0)
        barrier = muster.Barrier(1)
        with self.assertRaises(TypeError):
            barrier.wait("soon")
        with self.assertRaises(RuntimeError):
            barrier.__init__(1)
        self.assertEqual(barrier.wait(), 0)
        self.assertEqual(barrier.wait(0), 0)

    def test_of_one_that_was_not_made(self):
        class Forgets(muster.Barrier):
            def __init__(self):
                try:
                    super().__init__(0)
                except ValueError:
                    pass

        class Renames(muster.Barrier):
            def __init__(self):
                try:
                    super().__init__(1, name="a/b")
                except ValueError:
                    pass

        for barrier in muster.Barrier.__new__(muster.Barrier), Forgets(), Renames():
            for use in (repr, pickle.dumps, muster.Barrier.wait, muster.Barrier.reset,
                        muster.Barrier.abort, lambda one: one.parties, lambda one: one.n_waiting,
                        lambda one: one.broken, lambda one: one._fd):
                with self.assertRaisesRegex(RuntimeError, "__init__"):
                    use(barrier)

    def test_an_action_that_raises(self):
        def fail():
            raise KeyError("no")

        barrier = muster.Barrier(2, fail)
        told = multiprocessing.SimpleQueue()
        other = threading.Thread(target=wait_and_tell, args=(barrier, told))
        other.start()
        wait_for(lambda: barrier.n_waiting == 1)
        with self.assertRaises(KeyError):
            barrier.wait()
        other.join()
        self.assertEqual(told.get(), "broken")
        self.assertTrue(barrier.broken)

    def test_pickles_of_what_cannot_be(self):
        with self.assertRaises((pickle.PicklingError, AttributeError, TypeError)):
            pickle.dumps(muster.Barrier(2, lambda: None))

    def test_repr(self):
        barrier = muster.Barrier(2)
        self.assertIn("waiters=0/2", repr(barrier))
        barrier.abort()
        self.assertIn("broken", repr(barrier))


class Results(unittest.TestCase):
    def test_rows(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "results.json")
            with open(path, "w", encoding="utf-8") as file:
                json.dump({"schema": 1, "results": [{"a": 1, "b": {"c": 2}}]}, file)
            rows = muster.read_results(path)
            if isinstance(rows, list):
                self.assertEqual(rows, [{"a": 1, "b": {"c": 2}}])
            else:
                self.assertEqual(list(rows.columns), ["a", "b.c"])
            with open(os.path.join(folder, "pandas.py"), "w", encoding="utf-8") as file:
                file.write("raise AttributeError('of numpy')")
            shown = subprocess.run(
                [sys.executable, "-c", f"import muster; print(muster.read_results({path!r}))"],
                env={**os.environ, "PYTHONPATH": ":".join([folder, *sys.path])},
                capture_output=True, text=True, check=True)
            self.assertEqual(shown.stdout, "[{'a': 1, 'b': {'c': 2}}]\n")
            self.assertIn("UserWarning: pandas is broken: AttributeError: of numpy", shown.stderr)
            for text in "[]", "null", '{"results": 5}':
                with open(path, "w", encoding="utf-8") as file:
                    file.write(text)
                with self.assertRaisesRegex(ValueError, "no results of Muster"):
                    muster.read_results(path)

    def test_of_a_run_without_standard_error(self):
        with tempfile.TemporaryDirectory() as folder:
            program = os.path.join(folder, "muster")
            with open(program, "w", encoding="utf-8") as file:
                file.write("""#!/bin/sh\necho warning >&2; echo '{"results": []}'\n""")
            os.chmod(program, 0o755)
            with contextlib.redirect_stderr(None):
                self.assertEqual(len(muster.run(muster=program)), 0)

    def test_of_a_run_in_a_locale_without_letters(self):
        with tempfile.TemporaryDirectory() as folder:
            program = os.path.join(folder, "muster")
            with open(program, "w", encoding="utf-8") as file:
                file.write("""#!/bin/sh\necho '{"results": [{"a": "\u03bc"}]}'\n""")
            os.chmod(program, 0o755)
            asked = f"import muster; print(ascii(muster.run(muster={program!r})))"
            shown = subprocess.run(
                [sys.executable, "-c", asked],
                env={**os.environ, "PYTHONPATH": ":".join(sys.path), "LC_ALL": "C",
                     "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"},
                capture_output=True, text=True, check=True)
            self.assertIn("\\u03bc", shown.stdout)

    @unittest.skipUnless(os.environ.get("MUSTER"), "no program muster was built")
    def test_of_a_run(self):
        program = os.environ["MUSTER"]
        rows = muster.run("explain", "-p", 4, muster=program)
        self.assertEqual(len(rows), 1)
        with self.assertRaisesRegex(ValueError, "exit code 2: muster: .*"):
            muster.run("explain", "-p", 0, muster=program)
        with self.assertRaisesRegex(FileNotFoundError, "install Muster"):
            muster.run("list", muster="no-such-muster")


if __name__ == "__main__":
    unittest.main()
