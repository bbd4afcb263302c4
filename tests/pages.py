"""Pages of a broker, as a program reads them."""

import time
import urllib.error
import urllib.request


def get(url, **headers):
    """The status, the type and the text that a page answers, once its process listens."""
    deadline = time.monotonic() + 20
    while True:
        try:
            request = urllib.request.Request(url, headers=headers)
            with urllib.request.urlopen(request, timeout=20) as answer:
                return answer.status, answer.headers["content-type"], answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.headers["content-type"], error.read().decode()
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)
