"""The harness of these tests sees what it looks for."""

import subprocess
import unittest
import uuid

import harness

# Executes itself for ever.
RESTLESS = ["sh", "-c", 'exec sh -c "$0" "$0"', 'exec sh -c "$0" "$0"']


class Processes(unittest.TestCase):
    def start(self, *command, env):
        process = subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def test_a_process_that_executes_another_program_is_found_by_its_mark_all_the_while(self):
        name, value = "HARNESS_TEST_MARK", uuid.uuid4().hex
        process = self.start(*RESTLESS, env={name: value})
        mark = f"{name}={value}".encode()
        for _ in range(20_000):
            self.assertIn(mark, harness.environment_of(process.pid))
        self.assertEqual(harness.pids_with(f"{name}={value}"), [process.pid])

    def test_a_process_without_an_environment_has_none(self):
        process = self.start("/bin/sleep", "1000", env={})
        self.assertEqual(harness.environment_of(process.pid), b"")


if __name__ == "__main__":
    unittest.main()
