#!/usr/bin/env python3
"""Rules of the source tree that no compiler knows, each a check with a line of its own:

    PASS source/NAME
    FAIL source/NAME: what is wrong and where

Run from the top of the checkout. Exit status 1 if any failed. A line that breaks a rule for a reason
carries `// allowed: REASON`.
"""

import pathlib
import re
import sys

# A floor may include itself and what is listed for it; verbs/soft belongs to verbs.
FLOORS = {
    "core": set(),
    "csum": {"core"},
    "tun": {"core"},
    "verbs": {"core"},
    "transport": {"core", "csum", "tun", "verbs"},
    "daemon": {"core", "csum", "tun", "verbs", "transport"},
}
CODE = {".cc", ".h"}
OTHER_FOLDERS = ("tests", "bench")
MAX_LINES = 500

# What a floor must know nothing of, whatever it could reach.
SYSTEM_HEADERS = [
    (re.compile(r"<(infiniband|rdma)/"), {"core", "csum", "tun"}, "verbs headers"),
    (re.compile(r"<linux/if_tun\.h>"), {"core", "csum", "verbs", "transport"}, "the TUN interface"),
    (re.compile(r"<netlink/"), {"core", "csum", "verbs", "transport"}, "netlink"),
]

# Nothing in a data path allocates, locks, throws, logs or makes system calls other than TUN I/O, the
# doorbell and the wait.
DATAPATH_BANNED = [
    (r"\bnew\b(?!\s*\()|\bmake_(unique|shared)\b|\b[mc]alloc\b|\bstd::function\b", "allocates"),
    (r"\.(push_back|emplace_back|emplace|insert|resize|reserve)\(", "may allocate"),
    (r"\bstd::(string|vector|map|unordered_map|deque|list)\s*[<({]", "may allocate"),
    (r"\bstd::(mutex|lock_guard|scoped_lock|unique_lock|shared_mutex|condition_variable)\b", "locks"),
    (r"\bthrow\b", "throws"),
    (r"\bibv_(create|destroy|modify|query|reg|dereg|alloc|dealloc|open|close)_", "control path"),
    (r"\brdma_\w+\(", "control path"),
    (r"::(socket|ioctl|open|close|mmap|munmap|setsockopt|getsockopt|bind)\(", "system call"),
    (r"\b(spdlog|fmt)::", "logs"),
]

# Names that have one home.
ONE_HOME = [
    (r"\b(steady_clock|system_clock)::now\b|\brandom_device\b", ("core/clock", "daemon/", "tests/support/",
                                                              "tests/softroce/", "bench/"),
     "time and randomness are arguments"),
    (r"\b(sleep_for|sleep_until|usleep|nanosleep)\b", ("tests/softroce/", "bench/"), "nothing sleeps"),
    (r"\b(htons|htonl|ntohs|ntohl|htobe\d+|be\d+toh)\(", ("core/", "tests/"), "byte order is a type: core/byte_order.h"),
    (r"(?<![\w.:>])(::|std::)?(exit|_exit|abort|terminate)\(", ("daemon/main.cc", "tests/", "bench/"),
     "only main ends the process"),
]


class Source:
    def __init__(self, path):
        self.path = path
        self.name = path.as_posix()
        self.text = path.read_text(encoding="utf-8", errors="replace")
        self.lines = self.text.splitlines()

    @property
    def floor(self):
        return self.path.parts[0]

    def code_lines(self):
        """(number, line) without comments and without lines that are allowed by name."""
        for number, line in enumerate(self.lines, 1):
            if "// allowed: " in line:
                continue
            yield number, re.sub(r'"(\\.|[^"\\])*"', '""', line.split("//")[0])


def sources():
    for folder in (*FLOORS, *OTHER_FOLDERS):
        for path in sorted(pathlib.Path(folder).rglob("*")):
            if path.suffix in CODE and path.is_file():
                yield Source(path)


def check_includes(all_sources):
    """Includes run downwards only, and name their floor."""
    for source in all_sources:
        for number, line in enumerate(source.lines, 1):
            found = re.match(r'\s*#\s*include\s+(?:"([^"]+)"|(<[^>]+>))', line)
            if not found:
                continue
            where = f"{source.name}:{number}"
            if found.group(2):
                for pattern, floors, what in SYSTEM_HEADERS:
                    if pattern.match(found.group(2)) and source.floor in floors:
                        yield f"{where}: {source.floor}/ knows nothing of {what}"
                continue
            included = found.group(1)
            target = included.split("/")[0]
            if "/" in included and not pathlib.Path(target).is_dir():
                continue  # a library's, such as Highway's, whose headers ask for quotes
            if not pathlib.Path(included).exists():
                yield f"{where}: no file {included}; includes are named from the top"
            elif source.floor in FLOORS and target != source.floor and target not in FLOORS[source.floor]:
                yield f"{where}: {source.floor}/ must not include {included}"


def check_datapath(all_sources):
    """*_datapath.cc files keep to what a data path may do."""
    for source in all_sources:
        if not source.name.endswith("_datapath.cc") or source.floor not in FLOORS:
            continue
        for number, line in source.code_lines():
            for pattern, what in DATAPATH_BANNED:
                if re.search(pattern, line):
                    yield f"{source.name}:{number}: {what}: {line.strip()}"


def check_globals(all_sources):
    """No mutable variable outlives a call: no globals, statics or thread_locals."""
    start = re.compile(r"^\s*(?:(?:static|inline|thread_local|extern)\s+)+(?P<rest>.*)$")
    for source in all_sources:
        if source.floor not in FLOORS:
            continue
        for number, line in source.code_lines():
            found = start.match(line)
            if not found or re.search(r"\b(const|constexpr|constinit const|namespace)\b", line):
                continue
            declarator = re.split(r"[=;{]", found.group("rest"))[0]
            if re.search(r"[=;{]", line) and "(" not in declarator:
                yield f"{source.name}:{number}: {line.strip()}"


def check_homes(all_sources):
    """Clocks, randomness, byte order and process exit have one home each."""
    for source in all_sources:
        for number, line in source.code_lines():
            for pattern, homes, why in ONE_HOME:
                if not source.name.startswith(homes) and re.search(pattern, line):
                    yield f"{source.name}:{number}: {line.strip()} ({why})"


def check_size(all_sources):
    """A file is a room to live in."""
    for source in all_sources:
        if len(source.lines) > MAX_LINES and not source.name.startswith("tests/"):
            yield f"{source.name}: {len(source.lines)} lines, at most {MAX_LINES}"


def check_skips(all_sources):
    """A skipped test says why."""
    for source in all_sources:
        for number, line in enumerate(source.lines, 1):
            if re.search(r"GTEST_SKIP\(\)\s*;", line):
                yield f"{source.name}:{number}: GTEST_SKIP() without a reason"


def opening_comment(source):
    """The comment block that opens a header, with its line numbers."""
    for number, line in enumerate(source.lines, 1):
        if not line.startswith("//"):
            return
        yield number, line


def system_words():
    """Names that the kernel's and rdma-core's headers define."""
    words = set()
    for folder in ("linux", "infiniband", "rdma", "net", "netinet"):
        for path in pathlib.Path("/usr/include", folder).glob("*.h"):
            words.update(re.findall(r"\w+", path.read_text(encoding="utf-8", errors="replace")))
    return words


def check_theory(all_sources):
    """Identifiers in backticks in a header's theory of operation exist: in the code, or in the
    system's headers."""
    words = system_words()
    for source in all_sources:
        code = "\n".join(line for _, line in source.code_lines())
        words.update(re.findall(r"\w+", code))
        words.update(re.findall(r'"([^"\n]+)"', source.text))
        words.add(source.path.name)
        words.update(source.path.parts)
    for source in all_sources:
        if source.path.suffix != ".h":
            continue
        for number, line in opening_comment(source):
            for quoted in re.findall(r"`([^` ]+)`", line):
                for name in re.findall(r"[A-Za-z_]\w*", quoted):
                    if name not in words:
                        yield f"{source.name}:{number}: `{quoted}`: {name} does not exist"


def check_links(_):
    """Local links in the documents, and the paths that they name in backticks, exist."""
    documents = [*pathlib.Path(".").glob("*.md"), *pathlib.Path("docs").rglob("*.md")]
    for document in documents:
        text = document.read_text(encoding="utf-8")
        for number, line in enumerate(text.splitlines(), 1):
            for link in re.findall(r"\]\(([^)\s]+)\)", line):
                target = link.split("#")[0]
                if not target or re.match(r"[a-z]+:", target):
                    continue
                if not (document.parent / target).exists():
                    yield f"{document}:{number}: dead link {link}"
            for name in re.findall(r"`((?:core|csum|tun|verbs|transport|daemon|tests|bench|script|docs|"
                                   r"packaging)/[\w./-]*)`", line):
                if not pathlib.Path(name).exists():
                    yield f"{document}:{number}: no file {name}"


CHECKS = {
    "includes": check_includes,
    "datapath": check_datapath,
    "globals": check_globals,
    "homes": check_homes,
    "size": check_size,
    "skips": check_skips,
    "theory": check_theory,
    "links": check_links,
}


def main():
    all_sources = list(sources())
    failed = False
    for name, check in CHECKS.items():
        complaints = list(check(all_sources))
        for complaint in complaints:
            print(f"  {complaint}", file=sys.stderr)
        if complaints:
            failed = True
            more = f" and {len(complaints) - 1} more" if len(complaints) > 1 else ""
            print(f"FAIL source/{name}: {complaints[0]}{more}")
        else:
            print(f"PASS source/{name}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
