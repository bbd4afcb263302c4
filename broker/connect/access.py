"""Access to other systems: who the connector is, and who the server has to be.

A password stands in no URL, line of the log or error.
"""

from __future__ import annotations

import os
import ssl
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar
from urllib.parse import urlsplit

from msgspec import Struct

from broker.documents import text_of
from broker.errors import ConfigurationError


class Access(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Keys of every system: a user and a password, the certificate that the connector shows, and
    those by which it verifies the server's.
    """

    NEEDS_USER: ClassVar[bool] = True
    """Whether a password is that of a user alone."""

    username: str = ""
    password_file: str = ""
    password_env: str = ""
    ca_file: str = ""
    cert_file: str = ""
    key_file: str = ""

    def password(self, folder: Path) -> str | None:
        """The password in the file or the environment, if one is named. Raises
        ConfigurationError.
        """
        said = [key for key in ("password_file", "password_env") if getattr(self, key)]
        if not said:
            return None
        if len(said) > 1:
            raise ConfigurationError("password_env: expected this or password_file")
        if self.NEEDS_USER and not self.username:
            raise ConfigurationError(f"{said[0]}: expected with username")
        if self.password_file:
            return text_of(folder / self.password_file, "password_file").strip()
        try:
            return os.environ[self.password_env]
        except KeyError:
            raise ConfigurationError(
                f"password_env: {self.password_env} is not in the environment"
            ) from None

    def authorization(self, folder: Path) -> str:
        """The header of HTTP that says so: a password without a user is a token; "" for neither.
        Raises ConfigurationError.
        """
        password = self.password(folder)
        if self.username:
            pair = b64encode(f"{self.username}:{password or ''}".encode()).decode()
            return f"Basic {pair}"
        return "" if password is None else f"Bearer {password}"

    def tls(self, folder: Path) -> ssl.SSLContext:
        """How servers are verified, by the certificates of the file, or the system's, and the
        connector's own certificate. Raises ConfigurationError.
        """
        context = self._verifying(folder)
        if self.key_file and not self.cert_file:
            raise ConfigurationError("key_file: expected with cert_file")
        if self.cert_file:
            file, key = (self.path(folder, name) for name in ("cert_file", "key_file"))
            try:
                # Keys behind a passphrase would have it asked for at the terminal.
                context.load_cert_chain(file or "", key, password=lambda: "")
            except (OSError, ValueError) as error:  # of which ssl.SSLError is one
                reason = "expected a certificate and its key (PEM)"
                if not isinstance(error, ssl.SSLError):
                    reason = str(getattr(error, "strerror", error))
                place = file if key is None else f"{file}, key_file: {key}"
                raise ConfigurationError(f"cert_file: {place}: {reason}") from None
        return context

    def files(self, folder: Path, ca: str, cert: str, key: str) -> dict[str, str | None]:
        """The files under the names that a system's client has for them. Raises ConfigurationError
        for what is wrong with one, which clients say badly.
        """
        names = {ca: "ca_file", cert: "cert_file", key: "key_file"}
        files = {option: self.path(folder, name) for option, name in names.items()}
        if any(files.values()):
            self.tls(folder)
        return files

    def path(self, folder: Path, key: str) -> str | None:
        """The file that a key names; None if it names none."""
        return str(folder / name) if (name := getattr(self, key)) else None

    def reason(self, error: BaseException) -> str:
        """The reason of an error, in words; if a certificate was not verified, by which file."""
        for cause in _causes(error):
            if isinstance(cause, ssl.SSLCertVerificationError):
                return f"{self.verifier}: {cause.verify_message}"
        last = getattr(error, "strerror", None) or str(error)
        return str(last) or type(error).__name__

    @property
    def verifier(self) -> str:
        """The words for a server's certificate that was not verified."""
        by = f"ca_file {self.ca_file}" if self.ca_file else "the system; ca_file names others"
        return f"the server's certificate is not verified by {by}"

    def _verifying(self, folder: Path) -> ssl.SSLContext:
        if not self.ca_file:
            return ssl.create_default_context()
        file = folder / self.ca_file
        try:
            # The context of no certificates would take the system's.
            return ssl.create_default_context(cadata=text_of(file, "ca_file") or "none")
        except (ssl.SSLError, ValueError, TypeError):
            raise ConfigurationError(f"ca_file: {file}: expected certificates (PEM)") from None


def check_url(url: str, *schemes: str) -> None:
    """Raise ValueError unless a URL has one of these schemes, a host, and no password."""
    parts = urlsplit(url)
    if parts.username is not None or parts.password is not None:
        raise ValueError("url: expected none with a user: username and password_file name it")
    if parts.scheme not in schemes or not parts.hostname:
        expected = " or ".join(f"{scheme}://HOST:PORT" for scheme in schemes)
        raise ValueError(f"url: expected {expected}, found {url!r}")


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
