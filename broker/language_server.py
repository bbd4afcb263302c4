"""Rules in editors, by the Language Server Protocol: what is wrong, meanings, words, format.

The protocol is pygls'; what it tells of rules says :mod:`rules.editing`. Places of the protocol are
lines and UTF-16 units, those of a text offsets of characters; pygls' codec knows both.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import version

from lsprotocol import types
from pygls.lsp.server import LanguageServer
from pygls.workspace import TextDocument

from rules import editing
from rules.errors import RuleErrors, Span
from rules.syntax.formatter import format_text

_KINDS: Mapping[str, types.CompletionItemKind] = {
    "type": types.CompletionItemKind.Class,
    "attribute": types.CompletionItemKind.Field,
    "name": types.CompletionItemKind.Variable,
    "word": types.CompletionItemKind.Keyword,
}


def server() -> LanguageServer:
    """A server that has not begun."""
    made = LanguageServer("rexmq", version("rexmq"))

    @made.feature(types.TEXT_DOCUMENT_DID_OPEN)
    def opened(parameters: types.DidOpenTextDocumentParams) -> None:
        _tell(made, parameters.text_document.uri)

    @made.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    def changed(parameters: types.DidChangeTextDocumentParams) -> None:
        _tell(made, parameters.text_document.uri)

    @made.feature(types.TEXT_DOCUMENT_HOVER)
    def hover(parameters: types.HoverParams) -> types.Hover | None:
        document = made.workspace.get_text_document(parameters.text_document.uri)
        said = editing.meaning(document.source, document.offset_at_position(parameters.position))
        if said is None:
            return None
        return types.Hover(types.MarkupContent(types.MarkupKind.PlainText, said))

    @made.feature(types.TEXT_DOCUMENT_COMPLETION, types.CompletionOptions(["."]))
    def complete(parameters: types.CompletionParams) -> list[types.CompletionItem]:
        document = made.workspace.get_text_document(parameters.text_document.uri)
        offset = document.offset_at_position(parameters.position)
        return [
            types.CompletionItem(one.text, kind=_KINDS[one.kind], detail=one.detail)
            for one in editing.suggestions(document.source, offset)
        ]

    @made.feature(types.TEXT_DOCUMENT_FORMATTING)
    def formatted(parameters: types.DocumentFormattingParams) -> list[types.TextEdit]:
        document = made.workspace.get_text_document(parameters.text_document.uri)
        text = document.source
        try:
            new = format_text(text)
        except RuleErrors:
            return []
        whole = types.Range(types.Position(0, 0), _position(document, len(text)))
        return [] if new == text else [types.TextEdit(whole, new)]

    return made


def _tell(made: LanguageServer, uri: str) -> None:
    """Publish what is to be said of a document."""
    document = made.workspace.get_text_document(uri)
    found = [
        types.Diagnostic(
            _range(document, remark.span),
            remark.message,
            severity=types.DiagnosticSeverity.Error
            if remark.is_error
            else types.DiagnosticSeverity.Warning,
            source="rexmq",
        )
        for remark in editing.remarks(document.source)
    ]
    made.text_document_publish_diagnostics(
        types.PublishDiagnosticsParams(uri, found, document.version)
    )


def _range(document: TextDocument, span: Span) -> types.Range:
    return types.Range(_position(document, span.start), _position(document, span.end))


def _position(document: TextDocument, offset: int) -> types.Position:
    """The place of an offset, in the units that the client counts."""
    before = document.source[:offset]
    line_start = before.rfind("\n") + 1
    units = document.position_codec.client_num_units(before[line_start:])
    return types.Position(before.count("\n"), units)
