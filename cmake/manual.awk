# SPDX-License-Identifier: BSD-3-Clause
# manual.awk: muster(3), from the headers of the C interface: what stands at the top of each, and
# each declaration with its comment. Usage: awk -v version=0.1.0 -f manual.awk muster.h lock.h ...

function troff(text) {
  gsub(/\\/, "\\e", text)
  gsub(/-/, "\\-", text)
  gsub(/`/, "", text)
  sub(/^[.']/, "\\\\\\&&", text)
  return text
}
# As it stands; an empty line is one.
function verbatim(line) { print line == "" ? "" : troff(line) }

function end_declaration(  i, count, lines) {
  if (is_function) {
    gsub(/[ \n]+/, " ", declaration)
    sub(/^MUSTER_API /, "", declaration)
    print ".PP\n.nf\n.B \"" troff(declaration) "\"\n.fi"
  } else {
    print ".PP\n.nf"
    count = split(declaration, lines, "\n")
    for (i = 1; i <= count; ++i) verbatim(lines[i])
    print ".fi"
  }
  if (comment != "") print ".RS\n" comment ".RE"
  comment = declaration = ""
  depth = is_function = in_declaration = 0
}

BEGIN {
  print ".TH MUSTER 3 \"\" \"muster " version "\" \"Library\""
  print ".SH NAME\nlibmuster \\- barriers and locks that know where their participants sit"
  print ".SH SYNOPSIS\n.nf\n.B #include <muster/muster.h>\n.PP"
  print ".B cc program.c $(pkg\\-config \\-\\-cflags \\-\\-libs muster)\n.fi"
}

FNR == 1 {
  name = FILENAME
  sub(/.*\//, "", name)
  print ".SH <muster/" name ">"
  next  # the licence
}

# A file's first comment, and those with two stars; others are for who reads the header.
/^\/\*\*?$/ || /^\/\*\* / { in_comment = 1; is_top = /^\/\*$/; comment = "" }
in_comment {
  line = $0
  ends = line ~ /\*\//
  sub(/^\/\*\*? ?/, "", line)
  sub(/ *\*\/.*$/, "", line)
  sub(/^ \* ?/, "", line)
  is_code = line ~ /^  /
  if (is_code != was_code) comment = comment (is_code ? ".nf\n" : ".fi\n")
  was_code = is_code
  if (is_code) line = troff(line)
  else if (line == "") line = comment == "" ? "" : ".PP"
  else line = troff(line)
  if (line != "") comment = comment line "\n"
  if (ends) {
    if (was_code) comment = comment ".fi\n"
    was_code = 0
    in_comment = 0
    if (is_top) { print comment; comment = "" }
  }
  next
}

# A function in line, without its body.
/^static __inline / {
  declaration = $0
  sub(/^static __inline /, "", declaration)
  sub(/ {$/, ";", declaration)
  is_function = 1
  end_declaration()
  next
}
!in_declaration && (/^MUSTER_API/ || /^typedef/ || /^struct/ || (/^enum/ && comment != "")) {
  in_declaration = 1
  is_function = /^MUSTER_API/
  declaration = ""
}
in_declaration {
  declaration = declaration (declaration == "" ? "" : "\n") $0
  code = $0
  gsub(/\/\*.*\*\//, "", code)
  depth += gsub(/{/, "", code) - gsub(/}/, "", code)
  if (depth == 0 && code ~ /;[ ]*$/) end_declaration()
  next
}
# A comment belongs to what follows it at once.
$0 == "" { comment = "" }

END { print ".SH SEE ALSO\n.BR muster (1),\n.BR muster (7)" }
