"""Bad input: a clear short error on stderr, non-zero code, no traceback, nothing left behind."""
import os
import socket
import stat

from harness import case, check, error_lines, free_port, no_traceback, short, Skip, WORKER

G = "bad"
TB = "pytorch#65041 kind: the message comes as a Python traceback"


def refused(ctx, args, words, within=20, lines=3, env=None, code=None):
    """Run; the launcher must refuse. words: each is a word, or a tuple of which one must appear on stderr (any case)."""
    p = ctx.start(*args, env=env)
    rc = p.wait(within)
    check(rc != 0, "accepted (rc 0); stderr: " + short(p.err))
    err, low = error_lines(p.err), p.err.lower()
    missing = [w for w in words if not any(x.lower() in low for x in (w if isinstance(w, tuple) else (w,)))]
    note = "rc=%d, %d lines%s" % (rc, len(err), "" if not missing else ", does not name %s" % missing)
    check(no_traceback(p.err), "traceback; %s; last: %s" % (note, short(err[-1] if err else "", 120)))
    check(not missing, "%s: %s" % (note, short(p.err, 200)))
    check(0 < len(err) <= lines, "%d error lines, at most %d: %s" % (len(err), lines, short(p.err, 200)))
    check(code is None or rc == code, "rc=%s, expected %s" % (rc, code))
    check(not ctx.records(), "a worker was started")
    ctx.check_no_survivors()
    check(not ctx.litter(), "left in TMPDIR: %s" % ctx.litter())
    return note + ": " + short(err[-1], 120)


def single(*a):
    return ("--master-port", free_port()) + a


@case(G)
def bad_unknown_flag(ctx):
    """An unknown flag is named; exit code 2."""
    return refused(ctx, single("--nosuchflag", WORKER, "rec"), ["nosuchflag"], code=2)


@case(G)
def bad_no_script(ctx):
    """No script: usage error, exit code 2."""
    return refused(ctx, single("--nproc-per-node", 2), [("script", "required", "program", "command")], code=2)


@case(G)
def bad_max_restarts_word(ctx):
    """--max-restarts x: names flag and value; exit code 2."""
    return refused(ctx, single("--max-restarts", "xyz", WORKER, "rec"), [("max-restarts", "max_restarts"), "xyz"], code=2)


@case(G)
def bad_missing_value(ctx):
    """A flag at the end without its value: usage error, exit code 2."""
    return refused(ctx, ["--nproc-per-node"], [("nproc-per-node", "nproc_per_node")], code=2)


@case(G, torchrun_fails=TB)
def bad_nproc_zero(ctx):
    """--nproc-per-node 0."""
    return refused(ctx, single("--nproc-per-node", "0", WORKER, "rec"), [("nproc-per-node", "nproc_per_node")])


@case(G, torchrun_fails=TB)
def bad_nproc_negative(ctx):
    """--nproc-per-node=-2."""
    return refused(ctx, single("--nproc-per-node=-2", WORKER, "rec"), [("nproc-per-node", "nproc_per_node"), "-2"])


@case(G, torchrun_fails=TB)
def bad_nproc_word(ctx):
    """--nproc-per-node many."""
    return refused(ctx, single("--nproc-per-node", "many", WORKER, "rec"), [("nproc-per-node", "nproc_per_node"), "many"])


@case(G, torchrun_fails=TB)
def bad_nproc_gpu_without_gpu(ctx):
    """--nproc-per-node gpu on a machine without one."""
    if any(os.path.exists(x) for x in ("/dev/nvidia0", "/dev/kfd")):
        raise Skip("this machine has a GPU")
    return refused(ctx, single("--nproc-per-node", "gpu", WORKER, "rec"), [("gpu", "cuda")])


@case(G, torchrun_fails=TB)
def bad_nnodes_reversed(ctx):
    """--nnodes 2:1."""
    return refused(ctx, single("--nnodes", "2:1", WORKER, "rec"), [("nnodes", "min_nodes"), "2"])


@case(G, torchrun_fails=TB)
def bad_nnodes_shape(ctx):
    """--nnodes 1:2:3."""
    return refused(ctx, single("--nnodes", "1:2:3", WORKER, "rec"), ["nnodes", "1:2:3"])


@case(G, torchrun_fails=TB)
def bad_nnodes_zero(ctx):
    """--nnodes 0."""
    return refused(ctx, single("--nnodes", "0", WORKER, "rec"), [("nnodes", "min_nodes")])


@case(G, torchrun_fails=TB)
def bad_max_restarts_negative(ctx):
    """--max-restarts=-1."""
    return refused(ctx, single("--max-restarts=-1", WORKER, "rec"), [("max-restarts", "max_restarts")])


@case(G, torchrun_fails=TB)
def bad_endpoint(ctx):
    """--rdzv-endpoint with port 99999."""
    return refused(ctx, ["--rdzv-backend", "c10d", "--rdzv-endpoint", "127.0.0.1:99999", WORKER, "rec"], ["99999"])


@case(G, torchrun_fails=TB)
def bad_backend(ctx):
    """--rdzv-backend carrier-pigeon."""
    return refused(ctx, ["--rdzv-backend", "carrier-pigeon", "--rdzv-endpoint", "127.0.0.1:1", WORKER, "rec"], ["carrier-pigeon"])


@case(G, torchrun_fails=TB)
def bad_rdzv_conf(ctx):
    """--rdzv-conf abc (no key=value)."""
    return refused(ctx, single("--rdzv-conf", "abc", WORKER, "rec"), [("rdzv-conf", "rdzv_conf", "key1", "key=value")])


@case(G, refs=["pytorch#126510"], torchrun_fails="pytorch#126510: traceback with EADDRINUSE")
def bad_port_in_use(ctx):
    """--master-port held by somebody else: the error names the port and says it is in use; quick."""
    s = socket.socket()
    s.bind(("127.0.0.1", 0))
    s.listen(1)
    t = socket.socket(socket.AF_INET6)
    port = s.getsockname()[1]
    try:
        t.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        t.bind(("::", port))
        t.listen(1)
        return refused(ctx, ["--nnodes", "1", "--master-port", port, WORKER, "rec"], [str(port), "in use"], within=30)
    finally:
        s.close()
        t.close()


@case(G, torchrun_fails=TB)
def bad_redirects(ctx):
    """--redirects 7."""
    return refused(ctx, single("--redirects", "7", WORKER, "rec"), [("redirects", "does not match"), "7"])


@case(G, torchrun_fails=TB)
def bad_ranks_filter(ctx):
    """--local-ranks-filter zero."""
    return refused(ctx, single("--local-ranks-filter", "zero", WORKER, "rec"), [("local-ranks-filter", "local_ranks_filter")])


@case(G, torchrun_fails=TB)
def bad_module_and_no_python(ctx):
    """-m together with --no-python."""
    return refused(ctx, single("-m", "--no-python", "x"), ["no-python", "module"])


@case(G, refs=["pytorch#121257"], torchrun_fails=TB)
def bad_log_dir_is_file(ctx):
    """--log-dir is a regular file: the error names it."""
    f = os.path.join(ctx.dir, "plainfile")
    open(f, "w").close()
    return refused(ctx, single("--log-dir", f, "-r", "3", WORKER, "rec"), ["plainfile"])


@case(G, torchrun_fails=TB)
def bad_log_dir_unwritable(ctx):
    """--log-dir cannot be created (below /proc/1): the error names it."""
    return refused(ctx, single("--log-dir", "/proc/1/nowhere/logs", "-r", "3", WORKER, "rec"), ["/proc/1/nowhere"])


@case(G)
def bad_missing_script(ctx):
    """The script does not exist: non-zero, the file is named, nothing left running."""
    p = ctx.one("/nowhere/such_script.py", nproc=2)
    check(p.wait(40) != 0, "ended 0")
    check("such_script.py" in p.err, "file not named: " + short(p.err))
    ctx.check_no_survivors()
    return "rc %d" % p.rc


@case(G, torchrun_fails=TB)
def bad_missing_program(ctx):
    """--no-python with a program that does not exist: named, one error, no restarts."""
    return refused(ctx, single("--max-restarts", 3, "--no-python", "/nowhere/such_prog"), ["such_prog", ("no such file", "not found", "does not exist")], lines=6)


@case(G, torchrun_fails=TB)
def bad_not_executable(ctx):
    """--no-python with a file without execute permission: named with the reason."""
    f = os.path.join(ctx.dir, "plain_prog")
    with open(f, "w") as h:
        h.write("#!/bin/sh\nexit 0\n")
    os.chmod(f, stat.S_IRUSR | stat.S_IWUSR)
    return refused(ctx, single("--nproc-per-node", 2, "--no-python", f), ["plain_prog", ("permission denied", "not executable")], lines=6)
