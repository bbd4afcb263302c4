"""Names of sources, and which user may publish under them."""

from __future__ import annotations

from collections.abc import Callable

from routing.errors import Refusal
from routing.messages import Code, Rights
from routing.names import whole_of
from routing.serving.accounts import Accounts


class SourceNames:
    """The names that users' sources may bear. ``is_bound``: whether the access file binds a name to
    any user.
    """

    def __init__(self, accounts: Accounts) -> None:
        self._accounts = accounts
        self.is_bound: Callable[[str], bool] = lambda name: False

    def check_free(self, rights: Rights, name: str) -> None:
        """Raise Refusal if a name is another user's. A client may not bear the name of
        another user's source, whether it publishes or not: the source would be refused its name,
        and would be told numbers that are not its own.
        """
        whole = whole_of(name) or name
        if not rights.user or rights.names(whole):
            return
        of_a_page = whole.startswith("page/") and not f"{whole}/".startswith(f"page/{rights.user}/")
        is_taken = self.is_bound(whole) or self._accounts.owner(whole) not in ("", rights.user)
        if is_taken or of_a_page:
            reason = f"user {rights.user!r} may not publish as {whole!r}: another user's name"
            raise Refusal(Code.NOT_ALLOWED, reason)

    def check(self, rights: Rights, *names: str) -> None:
        """Raise Refusal unless a user's source may bear these names. With keys, a name is
        its user's from its first use on (routing.serving.accounts), or as the access file binds it,
        whoever had it before: ``sources = ["fridge-*"]`` lets no other user have fridge-7, and this
        one have no other name. ``page/ada`` is ada's. What holds of a source holds of its parts,
        and of recorded events that are published as its own. The broker that a client is connected
        to asks its own file, and the root the account, which is the same for all.
        """
        for name in names:
            self.check_free(rights, name)
            whole = whole_of(name) or name
            if rights.sources is not None and not rights.names(whole):
                tables = " or ".join(rights.tables)
                why = f"sources of {tables} in {rights.file} do not name it"
                reason = f"user {rights.user!r} may not publish as {whole!r}: {why}"
                raise Refusal(Code.NOT_ALLOWED, reason)
