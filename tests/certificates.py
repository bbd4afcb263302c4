"""Certificates for tests, made by openssl: an authority, its server and client, another one."""

import subprocess

from servers import needs

needs_openssl = needs("openssl", "openssl")


def made(folder):
    """Write ca.pem, server.pem, client.pem and their keys (.key), and other.pem, which has signed
    nothing, to a folder.
    """

    def openssl(*words):
        subprocess.run(["openssl", *words], cwd=folder, check=True, capture_output=True)

    def request(name, *words):
        key = "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"
        own = "-keyout", f"{name}.key", "-out", f"{name}.pem", "-days", "2"
        openssl("req", "-x509", *key, *own, "-subj", f"/CN={name}", *words)

    for name in ("ca", "other"):
        request(name)
    for name in ("server", "client"):
        by = "-CA", "ca.pem", "-CAkey", "ca.key", "-addext", "basicConstraints=CA:FALSE"
        request(name, *by, "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1")
    return folder
