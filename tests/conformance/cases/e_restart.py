"""Restart budget, exit codes, the failure report."""
import os
import time

from harness import case, check, no_traceback, short, WORKER

G = "restart"
X = "exit"


@case(G)
def budget_is_n_plus_one_starts(ctx):
    """--max-restarts 2 with a worker that always fails: three starts with TORCHELASTIC_RESTART_COUNT 0, 1, 2, then non-zero."""
    p = ctx.one("--max-restarts", 2, WORKER, "rec", "exit:1")
    check(p.wait(60) != 0, "ended 0")
    got = [r["env"]["TORCHELASTIC_RESTART_COUNT"] for r in ctx.records()]
    check(got == ["0", "1", "2"], "counts %s" % got)
    return "3 starts"


@case(G)
def no_budget_by_default(ctx):
    """Without --max-restarts a failed worker is not restarted."""
    p = ctx.one(WORKER, "rec", "exit:1")
    check(p.wait(60) != 0, "ended 0")
    check(len(ctx.records()) == 1, "%d starts" % len(ctx.records()))
    return "1 start"


@case(G)
def restart_then_success(ctx):
    """One failure, then success within the budget: launcher ends 0."""
    # A worker that fails before its neighbour has recorded itself would have it stopped unrecorded.
    p = ctx.one("--max-restarts", 3, WORKER, "rec", "a0?l0?await:go", "a0?l0?exit:9", "a0?sleep:100", nproc=2)
    ctx.wait_records(2)
    ctx.touch("go")
    check(p.wait(60) == 0, "rc=%s %s" % (p.rc, short(p.err[-200:])))
    n = len(ctx.records())
    check(n == 4, "%d starts, expected 4" % n)
    return "rc 0 after one restart"


@case(G, refs=["pytorch/elastic#134"])
def restart_takes_all_local_workers(ctx):
    """When one worker fails all local workers are stopped (TERM first) and started again with new pids."""
    p = ctx.one("--max-restarts", 1, WORKER, "a0?trap:TERM:0.1:0", "rec", "a0?l1?sleep:1", "a0?l1?exit:1", "a0?sleep:100", nproc=3)
    check(p.wait(60) == 0, "rc=%s %s" % (p.rc, short(p.err[-200:])))
    rs = ctx.records()
    check(len(rs) == 6 and len({r["pid"] for r in rs}) == 6, "%d starts" % len(rs))
    n = sum(f.startswith("gotTERM") for f in ctx.flags())
    check(n == 2, "%d of 2 healthy workers got SIGTERM" % n)
    return "3 + 3 starts, peers got TERM"


@case(G, refs=["pytorch#41067"])
def failure_noticed_at_once(ctx):
    """Rank 3 fails while rank 0 would run for ever: the job ends within 5 s of the failure."""
    p = ctx.one(WORKER, "rec", "r3?sleep:1", "r3?flag:dead", "r3?exit:1", "sleep:1000", nproc=4)
    ctx.wait_flag("dead", timeout=60)
    t = time.monotonic()
    check(p.wait(5, "the job to end") != 0, "ended 0")
    ctx.check_no_survivors()
    return "%.1f s" % (time.monotonic() - t)


@case(X)
def exit_zero(ctx):
    """All workers end 0: launcher ends 0 and writes nothing about failure."""
    p = ctx.one(WORKER, "out:hello", nproc=2)
    check(p.wait(40) == 0, "rc=%s" % p.rc)
    check("FAILED" not in p.err and no_traceback(p.err) and p.out.count("hello") == 2, short(p.all))
    return "rc 0"


@case(X)
def exit_nonzero_when_one_fails(ctx):
    """One worker ends 0 first, the other ends 1 later: launcher ends non-zero."""
    p = ctx.one(WORKER, "r1?sleep:1", "r1?exit:1", nproc=2)
    check(p.wait(40) != 0, "ended 0")
    return "rc %d" % p.rc


@case(X, refs=["pytorch#20728"], torchrun_fails="pytorch#20728: exit code is always 1")
def exit_code_of_worker(ctx):
    """The launcher's exit code is the first failed worker's: 3."""
    p = ctx.one(WORKER, "r1?exit:3", "sleep:100", nproc=2)
    check(p.wait(60) == 3, "rc=%s, worker ended 3" % p.rc)
    return "rc 3"


@case(X, refs=["pytorch#20728"], torchrun_fails="pytorch#20728: exit code is always 1")
def exit_code_of_killed_worker(ctx):
    """A worker killed by SIGKILL gives 137."""
    p = ctx.one(WORKER, "kill:9")
    check(p.wait(60) == 137, "rc=%s, expected 137" % p.rc)
    return "rc 137"


@case(X, refs=["pytorch#88251"])
def report_names_rank_code_pid(ctx):
    """The report on stderr names the failed rank, its exit code, and its pid."""
    p = ctx.one(WORKER, "rec", "r2?sleep:0.5", "r2?exit:43", "sleep:100", nproc=4)
    rs = ctx.wait_records(4)
    check(p.wait(60) != 0, "ended 0")
    pid = [r["pid"] for r in rs if r["env"]["RANK"] == "2"][0]
    miss = [w for w in ("43", str(pid), "rank") if w not in p.err]
    check(not miss, "report lacks %s: %s" % (miss, short(p.err[-400:], 300)))
    return "rank 2, code 43, pid %d" % pid


@case(X, refs=["pytorch#160908"], torchrun_fails="pytorch#160908 kin: the peers it stopped are listed as failures with -15")
def report_peers_are_not_failures(ctx):
    """Workers stopped by the launcher are not listed as failed with exit code -15."""
    p = ctx.one(WORKER, "r2?sleep:1", "r2?exit:43", "sleep:100", nproc=4)
    check(p.wait(60) != 0, "ended 0")
    check("exitcode  : -15" not in p.err and "exitcode: -15" not in p.err, short(p.err[-500:], 300))
    return "only rank 2 failed"


@case(X)
def report_shows_error_file(ctx):
    """The message a worker left in TORCHELASTIC_ERROR_FILE (@record format) appears in the report."""
    p = ctx.one(WORKER, "l0?errfile:ValueError: kaboom-51", "l0?exit:1", "sleep:100", nproc=2)
    check(p.wait(60) != 0, "ended 0")
    check("kaboom-51" in p.err, "message not in the report: " + short(p.err[-400:], 300))
    return "message shown"


@case(X, refs=["pytorch#187098", "pytorch#65041"], torchrun_fails="pytorch#187098, #65041: the report is wrapped in the launcher's own traceback")
def report_without_launcher_traceback(ctx):
    """A worker's failure does not print a traceback of the launcher itself."""
    p = ctx.one("--no-python", "false")
    check(p.wait(60) != 0, "ended 0")
    check(no_traceback(p.err), "launcher traceback of %d lines" % len(p.err.splitlines()))
    return "%d lines" % len(p.err.splitlines())


@case(X, refs=["pytorch#88251", "unsloth#10"], torchrun_fails="pytorch#88251: error_file <N/A>, no text of the failed worker")
def report_quotes_worker_stderr(ctx):
    """With output redirected to files the report quotes the failed worker's last stderr lines and names the file."""
    d = os.path.join(ctx.dir, "logs")
    p = ctx.one("--log-dir", d, "-r", 3, WORKER, "r1?err:first", "r1?err:BOOM-77", "r1?exit:3", "sleep:100", nproc=2)
    check(p.wait(60) != 0, "ended 0")
    check("BOOM-77" in p.err, "cause not in the report: " + short(p.err[-300:], 250))
    check("stderr.log" in p.err, "log file not named")
    return "BOOM-77 quoted"
