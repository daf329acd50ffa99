"""Certificate authorities and certificates, made by openssl."""

import subprocess
from pathlib import Path

CONFIG = """\
[ca]
default_ca = ca
[ca]
database = {folder}/index
serial = {folder}/serial
new_certs_dir = {folder}
policy = any
default_md = sha256
unique_subject = no
copy_extensions = copy
[any]
commonName = supplied
"""


def openssl(*words):
    subprocess.run(["openssl", *map(str, words)], check=True, capture_output=True, stdin=subprocess.DEVNULL)


class Authority:
    """A CA of its own in `folder`, which it makes; `ca` is its certificate."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self.folder.mkdir()
        self.ca = self.folder / "ca.pem"
        (self.folder / "index").touch()
        (self.folder / "serial").write_text("01\n")
        (self.folder / "config").write_text(CONFIG.format(folder=self.folder))
        openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", 30,
                "-subj", "/CN=test CA", "-keyout", self.folder / "ca.key", "-out", self.ca)

    def issue(self, name, *alternatives, expired=False):
        """(certificate, key) for subject alternative names such as "DNS:a.example.org"."""
        cert, key, request = (self.folder / f"{name}{suffix}" for suffix in (".pem", ".key", ".csr"))
        names = ["-addext", "subjectAltName=" + ",".join(alternatives)] if alternatives else []
        openssl("req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", f"/CN={name}",
                *names, "-keyout", key, "-out", request)
        dates = ["-startdate", "20200101000000Z", "-enddate", "20200102000000Z"] if expired else ["-days", 30]
        openssl("ca", "-batch", "-config", self.folder / "config", "-cert", self.ca, "-keyfile", self.folder / "ca.key",
                "-notext", *dates, "-in", request, "-out", cert)
        return cert, key
