#!/bin/sh
# Create the environment that the Makefile's targets run in, or say in one line what is missing.
#
# usage: sh environment.sh PYTHON VENV VERSION...
# The versions are those of the classifiers in pyproject.toml. Debian's packages stand for those of
# other systems, which have similar names.
set -u
python=$1 venv=$2
shift 2
first=$1
for last; do :; done
versions="$first to $last"
log=$venv/pip.log

fail() {
  echo "make: $1" >&2
  exit 1
}

named="name another one: make PYTHON=/path/to/python3"
[ -n "$python" ] ||
  fail "no Python $versions is on the PATH: install one (Debian, Ubuntu: apt-get install python3 python3-venv), or $named"
version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null) ||
  fail "$python cannot be run: install Python $versions, or $named"
case " $* " in
  *" $version "*) ;;
  *) fail "$python is Python $version, which is not supported: install Python $versions, or $named" ;;
esac
missing=$("$python" -c 'import importlib
for name in "venv", "ensurepip", "ssl":
    try:
        importlib.import_module(name)
    except ImportError:
        print(name)') || fail "$python does not start: see $python -c 'import venv', or $named"
[ -z "$missing" ] ||
  fail "$python lacks the module $(echo $missing): install it (Debian, Ubuntu: apt-get install python$version-venv), or $named"

# An environment of another Python, or of one that was removed, is made again.
[ "$("$venv/bin/python" -V 2>&1)" = "$("$python" -V 2>&1)" ] || clear=--clear
"$python" -m venv ${clear:-} "$venv" || fail "$python -m venv $venv failed: see above; free the folder or its disk"

install() {
  "$venv/bin/python" -m pip install --quiet --disable-pip-version-check "$@" >>"$log" 2>&1
}

: >"$log"
echo "make: installing the locked packages in $venv, which takes a minute or two once"
install --require-hashes -r requirements-dev.lock && install --no-deps --no-build-isolation -e . && exit

# The first cause that pip reports: a build that fails says more than its last line.
if grep -Eq 'Failed to establish|Max retries|resolution|[Tt]imed out|ProxyError|SSLError|ConnectionReset' "$log"; then
  fail "pip reaches no package index (see $log): connect this machine, or set PIP_INDEX_URL, HTTPS_PROXY or PIP_CERT to yours"
elif grep -Eq "[Ee]rror: command '.*' failed: No such file|unable to execute|[Cc]ompiler.*(not found|cannot be found)|[Uu]nable to find a compiler|Python\.h: No such file" "$log"; then
  fail "a package must be compiled here and there is no compiler, or not Python's headers (see $log): install both (Debian, Ubuntu: apt-get install build-essential python$version-dev), or use a system with wheels: glibc 2.28 or newer on x86-64 or arm64"
elif grep -q 'DO NOT MATCH THE HASHES' "$log"; then
  fail "the package index serves other files than requirements-dev.lock names (see $log): set PIP_INDEX_URL to another one, or remove pip's cache: $venv/bin/python -m pip cache purge"
fi
fail "pip failed: $(grep '^ERROR:' "$log" | head -n 1 | cut -c8-300); see $log"
