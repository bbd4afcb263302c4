"""An editor and ``rexmq lsp``, a process of its own, speak the Language Server Protocol."""

import asyncio
import sys

from lsprotocol import types
from pygls.lsp.client import LanguageClient

URI = "file:///fire.tesla"
FILE = types.TextDocumentIdentifier(URI)
# The sign of two UTF-16 units stands before what is wrong.
TEXT = 'event T(v: int, s: string)\ndefine X(v) from T(s = "\U0001f600", w > 1) where v = T.v\n'
WAIT_S = 60


class Editor:
    """A client that keeps what the server publishes."""

    def __init__(self):
        self.client = LanguageClient("editor", "1")
        self.published = asyncio.Queue()

        @self.client.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
        def published(parameters):
            self.published.put_nowait(parameters.diagnostics)

    async def diagnostics(self):
        return await asyncio.wait_for(self.published.get(), WAIT_S)

    async def open(self, text):
        document = types.TextDocumentItem(URI, "tesla", 1, text)
        self.client.text_document_did_open(types.DidOpenTextDocumentParams(document))
        return await self.diagnostics()

    async def change(self, text):
        change = types.TextDocumentContentChangeWholeDocument(text)
        document = types.VersionedTextDocumentIdentifier(2, URI)
        self.client.text_document_did_change(types.DidChangeTextDocumentParams(document, [change]))
        return await self.diagnostics()

    def position(self, text, place):
        before = text[: text.index(place)].rpartition("\n")
        return types.Position(
            before[0].count("\n") + bool(before[1]), len(before[2].encode("utf-16-le")) // 2
        )


async def session(story):
    editor = Editor()
    await editor.client.start_io(sys.executable, "-m", "broker", "lsp")
    try:
        capabilities = types.ClientCapabilities()
        await editor.client.initialize_async(types.InitializeParams(capabilities))
        editor.client.initialized(types.InitializedParams())
        await asyncio.wait_for(story(editor), WAIT_S)
    finally:
        await editor.client.shutdown_async(None)
        editor.client.exit(None)
        await asyncio.wait_for(editor.client.stop(), WAIT_S)


def test_a_text_is_judged_as_it_is_written():
    async def story(editor):
        (wrong,) = await editor.open(TEXT)
        assert wrong.message.startswith("T has no attribute w")
        assert wrong.severity == types.DiagnosticSeverity.Error
        assert wrong.range.start == editor.position(TEXT, "w > 1")
        assert not await editor.change(TEXT.replace(", w > 1", ""))

    asyncio.run(session(story))


def test_words_are_explained_completed_and_put_in_order():
    async def story(editor):
        client = editor.client
        text = TEXT.replace(", w > 1", "")
        await editor.open(text)
        hover = await client.text_document_hover_async(
            types.HoverParams(FILE, editor.position(text, "T(s ="))
        )
        assert hover.contents.value == "event T(v: int, s: string)"
        items = await client.text_document_completion_async(
            types.CompletionParams(FILE, editor.position(text, "v\n"))
        )
        assert [(item.label, item.kind) for item in items] == [
            ("v", types.CompletionItemKind.Field),
            ("s", types.CompletionItemKind.Field),
        ]
        (edit,) = await client.text_document_formatting_async(
            types.DocumentFormattingParams(FILE, types.FormattingOptions(4, True))
        )
        assert edit.range == types.Range(types.Position(0, 0), types.Position(2, 0))
        assert edit.new_text.startswith("event T(v: int, s: string)\n\ndefine X(v)\nfrom T(")
        await editor.change("define")
        edits = await client.text_document_formatting_async(
            types.DocumentFormattingParams(FILE, types.FormattingOptions(4, True))
        )
        assert not edits  # what cannot be read stays as it is

    asyncio.run(session(story))


def test_without_pygls_the_extra_is_named(monkeypatch, capsys):
    from broker.cli import main

    monkeypatch.setitem(sys.modules, "pygls.lsp.server", None)
    monkeypatch.delitem(sys.modules, "broker.language_server", raising=False)
    assert main(["lsp"]) == 2
    assert "pip install 'rexmq[lsp]'" in capsys.readouterr().err
