#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# debian.sh <source> <build> <scratch> <cmake>: the Debian package agrees with the rest: its version
# and the libraries' names with CMakeLists.txt, what it builds with and recommends with
# cmake/packages.txt, each file that is installed is in one of its packages, and what its libraries
# export is in debian/*.symbols.
set -euo pipefail
source=$1 build=$2 scratch=$3 cmake=$4
fail() { echo "$*" >&2; exit 1; }
command -v dh_missing >/dev/null || { echo "skipped: package debhelper"; exit 77; }
rm -rf "$scratch"
mkdir -p "$scratch"
cp -r "$source/debian" "$scratch/"
cd "$scratch"

echo "-- version"
version=$(sed -n 's/^  VERSION \(.*\)/\1/p' "$source/CMakeLists.txt")
packaged=$(dpkg-parsechangelog -S Version)
[ "${packaged%-*}" = "$version" ] || fail "debian/changelog has $packaged, CMakeLists.txt $version"
for package in "libmuster${version%.*}" "libmuster-memory${version%.*}"; do
  dh_listpackages | grep -qx "$package" || fail "debian/control lacks $package"
done

echo "-- what it builds with, and cmake/packages.txt"
words() { # words <field>...: the packages that these fields of debian/control name
  perl -MDpkg::Control::Info -MDpkg::Deps -e '
    my $control = Dpkg::Control::Info->new("debian/control");
    for my $section ($control->get_source(), $control->get_packages()) {
      for my $field (grep { defined $section->{$_} } @ARGV) {
        my $text = $section->{$field} =~ s/\$\{[^}]*\}//gr;
        my $deps = deps_parse($text, build_dep => 1) // die "$field: no list: $text\n";
        print map { "$_->{package}\n" } $deps->get_deps();
      }
    }' "$@"
}
listed=$(awk '$1 !~ /^#/ { print $2 }' "$source/cmake/packages.txt")
while read -r package; do
  grep -qx "$package" <<<"$listed" || fail "cmake/packages.txt lacks $package"
done < <(words Build-Depends | sed 's/^debhelper-compat$/debhelper/')
named=$(words Build-Depends Recommends Suggests)
while read -r package; do
  case $package in
    g++) continue ;;                   # build-essential
    ccache | libmpich-dev) continue ;; # nothing that is installed has it
  esac
  grep -qx "$package" <<<"$named" || fail "debian/control lacks $package of cmake/packages.txt"
done < <(awk '$1 ~ /^(build|demo)$/ { print $2 }' "$source/cmake/packages.txt")

echo "-- files"
lacking=$(dpkg-checkbuilddeps 2>&1) || { echo "skipped: $lacking"; exit 0; }
install() { DESTDIR=$scratch/debian/tmp "$cmake" --install "$build" --prefix /usr "$@" >/dev/null; }
install
install --component openmpi
# Debian's folder of libraries has its machine's name.
libdir=debian/tmp/usr/lib/$(dpkg-architecture -qDEB_HOST_MULTIARCH)
if [ ! -d "$libdir" ]; then
  mkdir "$libdir"
  find debian/tmp/usr/lib -mindepth 1 -maxdepth 1 ! -path "$libdir" -exec mv -t "$libdir" {} +
fi
dh_install
dh_missing

echo "-- symbols"
for symbols in debian/*.symbols; do
  package=$(basename "$symbols" .symbols)
  dpkg-gensymbols -c4 -p"$package" -P"debian/$package" -I"$symbols" -O"$scratch/found" ||
    fail "$symbols: say in which version a line with + came; one with - was promised"
done
rm -rf "$scratch"
