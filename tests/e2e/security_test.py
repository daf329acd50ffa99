"""Who may take part: each way in which a master can ask against each answer, with certificates made by openssl."""

import os
import shutil
import signal
import tempfile
import unittest
from pathlib import Path

import harness
from certificates import Authority
from harness import MUSTERD, Case

TOKEN = "0123456789abcdef-right"
NEXT_TOKEN = "0123456789abcdef-next"
WRONG_TOKEN = "0123456789abcdef-wrong"


def make(folder):
    """All files of the tests, once."""
    right, other = Authority(folder / "right"), Authority(folder / "other")
    files = {"ca": right.ca, "other-ca": other.ca}
    for name, authority, expired, *names in (
            ("server", right, False, "DNS:master.example.org", "IP:127.0.0.1"),
            ("elsewhere", right, False, "DNS:elsewhere.example.org"),
            ("agent", right, False, "DNS:a.example.org", "URI:spiffe://example.org/agent"),
            ("stranger", right, False, "DNS:b.example.org", "URI:spiffe://example.org/other"),
            ("expired", right, True, "DNS:a.example.org", "IP:127.0.0.1"),
            ("foreign", other, False, "DNS:a.example.org", "IP:127.0.0.1")):
        files[name] = authority.issue(name, *names, expired=expired)
    for name, token in (("token", TOKEN), ("wrong-token", WRONG_TOKEN)):
        files[name] = folder / name
        files[name].write_text(token + "\n")
        files[name].chmod(0o600)
    return files


class Secured(Case):
    @classmethod
    def setUpClass(cls):
        cls.folder = Path(tempfile.mkdtemp())
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.files = make(cls.folder)

    def pair(self, name):
        cert, key = self.files[name]
        return ["--tls-cert", cert, "--tls-key", key]

    def musterd(self, *args, listen="127.0.0.1:0"):
        daemon = self.start("--listen", listen, *args, program=MUSTERD)
        daemon.endpoint = daemon.wait_line(r"musterd [\d.]+ listens on (\S+:\d+)")[1]
        return daemon

    def agent(self, daemon, *args, program=("/bin/true",), env=None):
        return self.start("run", "--nnodes", 1, "--rdzv-endpoint", daemon.endpoint, "--rdzv-conf", "is_host=0,join_timeout=60",
                          "--rdzv-id", "job", *args, *program, env=env)

    def taken(self, daemon, *args, **kwargs):
        agent = self.agent(daemon, *args, **kwargs)
        self.assertEqual(agent.wait(), 0, agent.text())
        self.assertEqual(agent.text("err"), "")

    def refused(self, daemon, pattern, *args, code=77, **kwargs):
        agent = self.agent(daemon, *args, **kwargs)
        self.assertEqual(agent.wait(), code, agent.text())
        self.assert_one_line(agent, pattern)

    def stop(self, daemon):
        daemon.signal(signal.SIGTERM)
        self.assertEqual(daemon.wait(), 0, daemon.text())


class Table(Secured):
    def test_a_token_is_asked_for(self):
        daemon = self.musterd("--token-file", self.files["token"])
        self.taken(daemon, "--token-file", self.files["token"])
        self.taken(daemon, env={"MUSTER_TOKEN_FILE": str(self.files["token"])})
        self.refused(daemon, "this master wants a token: give --token-file")
        self.refused(daemon, "the token is not known here", "--token-file", self.files["wrong-token"])
        self.stop(daemon)

    def test_tls_without_a_question(self):
        ca = ["--tls-ca", self.files["ca"]]
        daemon = self.musterd(*self.pair("server"))
        self.taken(daemon, *ca)
        self.taken(daemon, *ca, "--tls-server-name", "master.example.org")
        self.taken(daemon, *ca, *self.pair("agent"))
        self.taken(daemon, *ca, "--token-file", self.files["token"])
        self.refused(daemon, "certificate", "--tls-ca", self.files["other-ca"])
        self.refused(daemon, "certificate", *ca, "--tls-server-name", "elsewhere.example.org")
        self.stop(daemon)

    def test_a_token_over_tls(self):
        ca = ["--tls-ca", self.files["ca"]]
        daemon = self.musterd(*self.pair("server"), "--token-file", self.files["token"])
        self.taken(daemon, *ca, "--token-file", self.files["token"])
        self.refused(daemon, "give --token-file", *ca)
        self.refused(daemon, "the token is not known here", *ca, "--token-file", self.files["wrong-token"])
        self.stop(daemon)

    def test_certificates_of_both_sides(self):
        ca = ["--tls-ca", self.files["ca"]]
        daemon = self.musterd(*self.pair("server"), *ca)
        self.taken(daemon, *ca, *self.pair("agent"))
        self.taken(daemon, *ca, *self.pair("stranger"))
        self.refused(daemon, "certificate", *ca)
        self.refused(daemon, "certificate", *ca, *self.pair("foreign"))
        self.refused(daemon, "expired on 2020-01-02", *ca, *self.pair("expired"), code=78)
        self.stop(daemon)

    def test_only_allowed_names(self):
        ca = ["--tls-ca", self.files["ca"]]
        for allowed in ("a.example.org", "*.nodes.example.org, spiffe://example.org/agent"):
            daemon = self.musterd(*self.pair("server"), *ca, "--allowed-peers", allowed)
            self.taken(daemon, *ca, *self.pair("agent"))
            self.refused(daemon, "b.example.org is none of those that --allowed-peers names", *ca, *self.pair("stranger"))
            self.refused(daemon, "certificate", *ca)
            self.stop(daemon)

    def test_the_commands_of_operators_are_asked_too(self):
        ca = ["--tls-ca", self.files["ca"]]
        token = ["--token-file", self.files["token"]]
        daemon = self.musterd(*self.pair("server"), *ca, "--token-file", self.files["token"])
        for code, words in ((0, [*ca, *self.pair("agent"), *token]), (77, [*ca, *self.pair("agent")]), (77, [*ca, *token]),
                            (77, ["--tls-ca", self.files["other-ca"], *self.pair("agent"), *token])):
            status = self.start("status", "--rdzv-endpoint", daemon.endpoint, *words)
            self.assertEqual(status.wait(), code, status.text())
            stop = self.start("stop", "--rdzv-endpoint", daemon.endpoint, *words, "job")
            self.assertEqual(stop.wait(), code or 1, stop.text())
        self.stop(daemon)

    def test_tls_on_one_side_alone_is_named_to_nodes_and_operators(self):
        for master, words, hint in ((self.pair("server"), [], "what listens there speaks TLS: give --tls-ca$"),
                                    ([], ["--tls-ca", self.files["ca"]], "what listens there speaks no TLS: drop --tls-ca, ")):
            daemon = self.musterd(*master)
            self.refused(daemon, f"^muster: {daemon.endpoint}: {hint}", *words, code=78)
            nobody = f"127.0.0.1:{harness.free_port()}"
            for command in (["status"], ["status", "--watch", "job"], ["stop", "job"], ["drain", "job"]):
                for endpoints in (daemon.endpoint, f"{nobody},{daemon.endpoint}", f"{daemon.endpoint},{nobody}"):
                    asked = self.start(command[0], "--rdzv-endpoint", endpoints, *words, *command[1:])
                    self.assertEqual(asked.wait(), 78, asked.text())
                    self.assert_one_line(asked, f"^muster: {daemon.endpoint}: {hint}")
            self.stop(daemon)

    def test_a_node_without_tls_ends_when_all_of_its_masters_have_spoken_it(self):
        daemons = [self.musterd(*self.pair("server")) for _ in range(2)]
        node = self.start("run", "--nnodes", 2, "--rdzv-endpoint", ",".join(daemon.endpoint for daemon in daemons), "--rdzv-id", "job",
                          "/bin/true")
        self.assertEqual(node.wait(), 78, node.text())
        hint = "what listens there speaks TLS: give --tls-ca"
        self.assertEqual(node.text("err").splitlines()[-1],
                         f"muster: {daemons[0].endpoint}: {hint}; {daemons[1].endpoint}: {hint}")
        for daemon in daemons:
            self.stop(daemon)

    def test_a_master_that_cannot_prove_its_name(self):
        daemon = self.musterd(*self.pair("elsewhere"))
        self.refused(daemon, "certificate", "--tls-ca", self.files["ca"])
        self.taken(daemon, "--tls-ca", self.files["ca"], "--tls-server-name", "elsewhere.example.org")
        self.stop(daemon)

    def test_a_token_never_travels_in_the_clear(self):
        node = self.start("run", "--nnodes", 2, "--rdzv-endpoint", "192.0.2.1:1", "--rdzv-id", "job", "--token-file",
                          self.files["token"], "/bin/true")
        self.assertEqual(node.wait(), 78)
        self.assert_one_line(node, "--token-file: without TLS the token could be read on its way to 192.0.2.1:1: give --tls-ca")


    def test_operators_hear_of_such_a_file_too_before_anybody_is_dialled(self):
        nobody = f"127.0.0.1:{harness.free_port()}"
        for option in ("--tls-ca", "--token-file"):
            for command in (["status"], ["stop", "job"], ["drain", "job"]):
                asked = self.start(command[0], "--rdzv-endpoint", nobody, option, "/nowhere/file", *command[1:])
                self.assertEqual(asked.wait(), 78, asked.text())
                self.assert_one_line(asked, "/nowhere/file")
        asked = self.start("status", "--rdzv-endpoint", "192.0.2.1:1", "--token-file", self.files["token"])
        self.assertEqual(asked.wait(), 78, asked.text())
        self.assert_one_line(asked, "without TLS the token could be read on its way")

    def test_everybody_who_uses_a_secret_that_all_can_read_is_told_once(self):
        folder = self.folder / "exposed"
        folder.mkdir()
        for name, source in (("token", self.files["token"]), ("key", self.files["agent"][1])):
            shutil.copy(source, folder / name)
            (folder / name).chmod(0o644)
        cert, key = self.files["agent"]
        daemon = self.musterd(*self.pair("server"), "--tls-ca", self.files["ca"], "--token-file", folder / "token")
        daemon.wait_line(rf"warning musterd: {folder}/token can be read by every user of this machine: chmod 600 it$")
        client = ["--rdzv-endpoint", daemon.endpoint, "--tls-ca", self.files["ca"], "--tls-cert", cert]
        run = ["--nnodes", 1, "--rdzv-conf", "is_host=0", "--rdzv-id", "job"]
        for words, code in ((["status"], 0), (["status", "--watch", "job"], 1), (["stop", "job"], 1), (["drain", "job"], 1),
                            (["run", *run, "/bin/true"], 0)):
            for token, own in (("token", key), (None, folder / "key")):
                options = ["--token-file", folder / token if token else self.files["token"], "--tls-key", own]
                asked = self.start(words[0], *client, *options, *words[1:])
                self.assertEqual(asked.wait(), code, asked.text())
                warnings = [line for line in asked.text("err").splitlines() if "every user" in line]
                self.assertEqual(warnings, [f"muster: {folder}/{token or 'key'} can be read by every user of this machine: "
                                            "chmod 600 it"])
        # A group may.
        (folder / "token").chmod(0o640)
        status = self.start("status", *client, "--tls-key", key, "--token-file", folder / "token")
        self.assertEqual((status.wait(), status.text("err")), (0, ""))
        self.stop(daemon)

    def test_a_file_that_cannot_be_used_is_named_though_nobody_is_there(self):
        run = ["run", "--nnodes", 2, "--rdzv-endpoint", f"127.0.0.1:{harness.free_port()}", "--rdzv-conf", "is_host=0",
               "--rdzv-id", "job"]
        for option in ("--tls-ca", "--token-file"):
            node = self.start(*run, option, "/nowhere/file", "/bin/true")
            self.assertEqual(node.wait(), 78, node.text())
            self.assert_one_line(node, "^muster: cannot read /nowhere/file: No such file or directory")

    def test_a_file_that_cannot_be_used_is_all_that_is_said(self):
        node = self.start("run", "--nnodes", 2, "--rdzv-endpoint", f"127.0.0.1:{harness.free_port()}", "--token-file",
                          "/nowhere/file", "/bin/true")
        self.assertEqual(node.wait(), 78, node.text())
        self.assert_one_line(node, "^muster: cannot read /nowhere/file: No such file or directory")


class Rotation(Secured):
    def test_certificates_change_without_a_restart(self):
        folder = self.folder / "rotated"
        folder.mkdir()
        for index, name in enumerate(("cert", "key")):
            shutil.copy(self.files["elsewhere"][index], folder / name)
        daemon = self.musterd("--tls-cert", folder / "cert", "--tls-key", folder / "key")
        daemon.wait_line("certificate of elsewhere.example.org, valid until")
        self.refused(daemon, "certificate", "--tls-ca", self.files["ca"])
        # The new pair, each whole; the key first makes no pair for a moment, which nobody must notice for long.
        for index, name in enumerate(("cert", "key")):
            shutil.copy(self.files["server"][index], folder / "new")
            os.replace(folder / "new", folder / name)
        daemon.signal(signal.SIGHUP)
        daemon.wait_line("certificate of master.example.org, valid until")
        end = harness.deadline()
        while True:
            agent = self.agent(daemon, "--tls-ca", self.files["ca"])
            if agent.wait() == 0:
                break
            self.assertLess(harness.time.monotonic(), end, agent.text())
        self.stop(daemon)

    def test_tokens_change_without_a_restart(self):
        tokens = self.folder / "tokens"
        tokens.write_text(TOKEN)
        tokens.chmod(0o600)
        daemon = self.musterd("--token-file", tokens)
        self.taken(daemon, "--token-file", self.files["token"])
        following = self.folder / "next-token"
        following.write_text(NEXT_TOKEN)
        following.chmod(0o600)
        (self.folder / "new").write_text(f"# both are taken meanwhile\n{NEXT_TOKEN}\n{TOKEN}\n")
        os.replace(self.folder / "new", tokens)
        self.taken(daemon, "--token-file", self.files["token"])
        self.taken(daemon, "--token-file", following)
        (self.folder / "new").write_text(NEXT_TOKEN)
        os.replace(self.folder / "new", tokens)
        self.refused(daemon, "the token is not known here", "--token-file", self.files["token"])
        self.taken(daemon, "--token-file", following)
        # A file that makes no sense leaves what was there.
        (self.folder / "new").write_text("short")
        os.replace(self.folder / "new", tokens)
        self.taken(daemon, "--token-file", following)
        daemon.signal(signal.SIGHUP)
        daemon.wait_line(r"tokens:1 is no token: .*what was read before stays")
        self.stop(daemon)


class Secrets(Secured):
    def test_they_are_in_no_argument_log_report_or_environment(self):
        ca = ["--tls-ca", self.files["ca"]]
        report = self.folder / "report.json"
        daemon = self.musterd(*self.pair("server"), "--token-file", self.files["token"], "--log-level", "debug")
        agent = self.agent(daemon, *ca, "--token-file", self.files["token"], "--log-level", "debug", "--report-file", report,
                           program=["--no-python", "bash", "-c", "echo up; exec sleep 1000"])
        agent.wait_line("^up$")
        key = self.files["server"][1].read_text().splitlines()[1]
        seen = b""
        for pid in [daemon.pid, *agent.marked()]:
            for name in ("cmdline", "environ"):
                seen += Path(f"/proc/{pid}/{name}").read_bytes()
        agent.signal(signal.SIGTERM)
        self.assertEqual(agent.wait(), 143)
        self.refused(daemon, "the token is not known here", *ca, "--token-file", self.files["wrong-token"])
        self.stop(daemon)
        seen += (agent.text() + daemon.text() + report.read_text()).encode()
        for secret in (TOKEN, WRONG_TOKEN, key):
            self.assertNotIn(secret.encode(), seen)

    def test_the_workers_sockets_are_their_users(self):
        job = self.start("run", "--no-python", "bash", "-c", "echo at $MUSTER_SOCKET; exec sleep 1000")
        socket = Path(job.wait_line(r"^at (\S+)$")[1])
        self.assertEqual(socket.parent.stat().st_mode & 0o077, 0)
        self.assertEqual(socket.parent.stat().st_uid, os.getuid())
        job.signal(signal.SIGTERM)
        self.assertEqual(job.wait(), 143)


class Embedded(Secured):
    """The same options for a master that one of the nodes hosts."""

    def job(self, *args, names=("a", "b")):
        endpoint = f"127.0.0.1:{harness.free_port()}"
        return [self.start("run", "--nnodes", 2, "--rdzv-endpoint", endpoint, "--rdzv-id", "job", "--node-id", name, *args,
                           "/bin/true") for name in names]

    def test_nodes_with_certificates_meet_over_tls(self):
        nodes = self.job("--tls-ca", self.files["ca"], *self.pair("server"), "--token-file", self.files["token"],
                         "--allowed-peers", "master.example.org", "--require-auth")
        self.assertEqual([node.wait() for node in nodes], [0, 0], "".join(node.text() for node in nodes))

    def test_a_master_that_asks_nobody_is_warned_of_or_refused(self):
        # An address of nobody, so that the host by decree listens on all of its own.
        run = ["run", "--nnodes", 1, "--rdzv-endpoint", f"192.0.2.1:{harness.free_port()}", "--rdzv-conf", "is_host=1",
               "--rdzv-id", "job"]
        node = self.start(*run, "/bin/true")
        self.assertEqual(node.wait(), 0, node.text())
        self.assert_one_line(node, "the master listens on .* and asks nobody who they are")
        node = self.start(*run, "--require-auth", "/bin/true")
        self.assertEqual(node.wait(), 78)
        self.assert_one_line(node, "--require-auth: .*give --tls-ca, --tls-cert and --tls-key")


if __name__ == "__main__":
    unittest.main()
