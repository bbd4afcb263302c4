"""Frames that are plain scans of Parquet files, which workers can read without Java (``parquet``).

Law: a frame is taken for a scan only if its optimised plan is a relation over files of the local
file system, of which columns are chosen and renamed and folders left out, and nothing else; if no
setting asks Spark to read files in a way of its own; and if each file holds what Spark's types of
the columns say, no more and no less. For whatever else there is a sentence that says why not, and
Spark reads it.

The plan is Java's. Its classes are compared by name, exactly: a subclass may mean anything.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession, types as spark

from broker.spark.blocks import ROWS_TOGETHER, Packing
from broker.spark.frames import ID, SEQUENCE, SOURCE, TIME, TYPE, Form, held, kind_of
from broker.spark.parquet import (
    CONSTANTS,
    FilePacking,
    Given,
    Group,
    Piece,
    State,
    Value,
    WideRows,
    opened,
    unlike,
    unread,
)
from matcher.model import Kind

FILES_MAX = 10_000
"""So many footers are read before anything runs."""
ROWS_JOINED = 1 << 13
"""Row groups are read together up to so many rows: about as many as take as long to read and to
hand to the rules as the rest that is done with a piece.
"""
_PLANS = "org.apache.spark.sql.catalyst.plans.logical."
_FILES = "org.apache.spark.sql.execution.datasources."
_PRINTED = re.compile(
    r"{path=file:(/.*?); isDirectory=false; length=(\d+);.*?; modification_time=(\d+);", re.DOTALL
)
"""The form in which Java prints a file of the local file system."""
_SETTINGS = {
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.int96TimestampConversion": "false",
    "spark.sql.parquet.fieldId.read.enabled": "false",
}
"""Settings without which Spark reads files in another way."""
_OPTIONS = {
    "path",
    "paths",
    "basepath",
    "mergeschema",
    "recursivefilelookup",
    "pathglobfilter",
    "modifiedbefore",
    "modifiedafter",
}
"""Options of a reader that say which files there are, and not how they are read."""


@dataclass(frozen=True, slots=True)
class Scan:
    """A frame that is a scan: what each task is to read, and how rows are made of it."""

    tasks: Sequence[Sequence[Piece]]
    rows: WideRows

    def packed(self, session: SparkSession, packing: Packing, schema: str) -> DataFrame:
        """The frame's blocks and tallies."""
        count = len(self.tasks)
        return session.range(0, count, 1, max(1, count)).mapInArrow(
            FilePacking(self.tasks, self.rows, packing), schema
        )

    @property
    def files(self) -> int:
        """How many there are with rows in them."""
        groups = (group for own in self.tasks for piece in own for group in piece.groups)
        return len({group.path for group in groups})


@dataclass(frozen=True, slots=True)
class _File:
    path: str
    state: State
    constants: Mapping[str, Value]


class _NoScan(Exception):
    """The reason why a frame is none, as the end of a sentence."""


def scan_of(
    frame: DataFrame, form: Form, row_type: str | None, columns: Sequence[str], time: str
) -> Scan | str:
    """The scan that gives these ``columns`` of the wide frame of a frame whose rows are all of type
    ``row_type``, or say their type themselves (None); or why there is none.
    """
    try:
        rows = _rows(frame, form, row_type, columns, time)
        _check_settings(frame.sparkSession)
        names, relation, filters = _relation(frame)
        fields = {name: names[name] for name in rows.needed}
        renamed = _renamed(rows, fields)
        types = {fields[name]: frame.schema[name].dataType.simpleString() for name in fields}
        files = _files(frame, relation, filters, types)
        return Scan(_tasks(files, types), renamed)
    except _NoScan as reason:
        return str(reason)
    except (Py4JError, PySparkException, AttributeError, TypeError, KeyError) as error:
        # Another version of Spark may name things in another way.
        return f"its plan is not understood ({type(error).__name__})"


# --- rows ----------------------------------------------------------------------------------------


def _rows(
    frame: DataFrame, form: Form, row_type: str | None, columns: Sequence[str], time: str
) -> WideRows:
    """How the columns follow from those of the frame, which holds what ``frames`` has checked."""
    if not form.has_sequence:
        raise _NoScan("its rows have no sequence numbers and are named after what they hold")
    for one in form.types:
        if one.has_optional and row_type in (None, one.name):
            raise _NoScan(f"event {one.name} has optional attributes")
    schema, fields = frame.schema, {name: name for name in (SOURCE, SEQUENCE, ID)}
    fields |= {TIME: time} if row_type is not None else {TIME: time, TYPE: TYPE}
    fields = {name: given for name, given in fields.items() if given in frame.columns}
    for name, given in fields.items():
        data_type = schema[given].dataType
        if name == SEQUENCE:
            is_right = kind_of(data_type) is Kind.INT
        else:
            is_right = data_type == (spark.TimestampType() if name == TIME else spark.StringType())
        if not is_right:
            raise _NoScan(f"its column {given} is of type {data_type.simpleString()}")
    types = [one for one in form.types if row_type in (None, one.name)]
    attributes = {
        one.name: tuple(
            Given(
                form.column(attribute),
                attribute.name,
                attribute.kind,
                column,
                kind_of(schema[column].dataType) is Kind.FLOAT,
            )
            for attribute in one.attributes
            for column in [held(frame, attribute.name) or attribute.name]
        )
        for one in types
    }
    return WideRows(tuple(columns), fields, attributes, row_type)


def _renamed(rows: WideRows, names: Mapping[str, str]) -> WideRows:
    """The same over columns with the names that they have in files."""
    attributes = {
        name: tuple(
            Given(one.column, one.name, one.kind, names[one.field], one.checks) for one in own
        )
        for name, own in rows.attributes.items()
    }
    fields = {name: names[field] for name, field in rows.fields.items()}
    return WideRows(rows.columns, fields, attributes, rows.row_type)


# --- the plan ------------------------------------------------------------------------------------


def _check_settings(session: SparkSession) -> None:
    for key, wanted in _SETTINGS.items():
        found = session.conf.get(key)
        if found is None or found.upper() != wanted.upper():
            raise _NoScan(f"{key} is {found}")


def _relation(frame: DataFrame) -> tuple[dict[str, str], Any, list[Any]]:
    """The relation that the frame is, the names that the frame's columns have there, and
    conditions on names of folders.
    """
    if not hasattr(frame, "_jdf"):
        raise _NoScan("Spark Connect does not show its plan")
    # Anew, for what the frame was made of may have been kept by Spark (cache) since.
    whole = plan = frame.select("*")._jdf.queryExecution().optimizedPlan()
    steps, conditions = list[Any](), list[Any]()
    while (kind := plan.getClass().getName()) in (f"{_PLANS}Project", f"{_PLANS}Filter"):
        steps.append(plan) if kind == f"{_PLANS}Project" else conditions.append(plan)
        plan = plan.child()
    if kind != f"{_FILES}LogicalRelation":
        raise _NoScan(f"it is no plain scan of files (its plan has {kind.rpartition('.')[2]})")
    relation = plan.relation()
    for found, wanted in (
        (relation, f"{_FILES}HadoopFsRelation"),
        (relation.fileFormat(), f"{_FILES}parquet.ParquetFileFormat"),
        (relation.location(), f"{_FILES}InMemoryFileIndex"),
    ):
        if found.getClass().getName() != wanted:
            raise _NoScan(f"it is no scan of Parquet files ({found.getClass().getSimpleName()})")
    asked = {pair._1().lower() for pair in _items(relation.options().toSeq())} - _OPTIONS
    if asked:
        raise _NoScan(f"its reader has the option {min(asked)}")
    names = {one.exprId().id(): one.name() for one in _items(plan.output())}
    folders = {*relation.partitionSchema().fieldNames()}
    of_folders = {number for number, name in names.items() if name in folders}
    for step in reversed(steps):
        names |= _given_by(step, names)
    return _outputs(whole, names), relation, [_condition(one, of_folders) for one in conditions]


def _given_by(project: Any, names: Mapping[int, str]) -> dict[int, str]:
    """The columns of a projection by their numbers, with the names that they have in files; those
    that are computed are left out.
    """
    found = {}
    for one in _items(project.projectList()):
        origin = one.child() if one.getClass().getSimpleName() == "Alias" else one
        is_column = origin.getClass().getSimpleName() == "AttributeReference"
        if is_column and origin.exprId().id() in names:
            found[one.exprId().id()] = names[origin.exprId().id()]
    return found


def _outputs(plan: Any, names: Mapping[int, str]) -> dict[str, str]:
    """The same by the names of a plan's columns."""
    found = {one.name(): one.exprId().id() for one in _items(plan.output())}
    lacking = [name for name, number in found.items() if number not in names]
    if lacking:
        raise _NoScan(f"its column {min(lacking)} is computed")
    return {name: names[number] for name, number in found.items()}


def _condition(plan: Any, of_folders: set[int]) -> Any:
    """The condition of a filter, if it chooses among folders."""
    condition = plan.condition()
    by = [*_items(condition.references().toSeq())]
    is_of_folders = all(one.exprId().id() in of_folders for one in by)
    if not is_of_folders or not condition.deterministic() or not plan.subqueries().isEmpty():
        names = sorted(one.name() for one in by)
        raise _NoScan(f"its rows are filtered by {', '.join(names) or 'a condition'}")
    return condition


def _items(sequence: Any) -> Iterator[Any]:
    """The items of a sequence of Scala's."""
    for place in range(sequence.size()):
        yield sequence.apply(place)


# --- files ---------------------------------------------------------------------------------------


def _files(
    frame: DataFrame, relation: Any, filters: Sequence[Any], types: Mapping[str, str]
) -> list[_File]:
    """The files, as the frame listed them and as they are, by their names."""
    java: Any = frame.sparkSession._jvm
    of_java = java.PythonUtils.toSeq
    folders = relation.location().listFiles(of_java([*filters]), of_java([]))
    found: Iterable[_File] | None = None
    if types.keys().isdisjoint(relation.partitionSchema().fieldNames()):
        found = _told_at_once(folders)
    files = list[_File]()
    for one in _told(folders, relation, types) if found is None else found:
        if len(files) == FILES_MAX:
            raise _NoScan(f"it has more than {FILES_MAX} files")
        try:
            is_same = State.of(one.path) == one.state
        except OSError as error:
            raise _NoScan(f"file {one.path} cannot be read here: {error.strerror}") from error
        if not is_same:
            raise _NoScan(f"file {one.path} has changed since the frame was made")
        files.append(one)
    # Spark lists folders in any order; by their names, recordings are mostly in order of time.
    return sorted(files, key=lambda one: one.path)


def _told_at_once(folders: Any) -> list[_File] | None:
    """The files of folders whose names give nothing that is needed; None where what Java prints of
    them is not understood.

    Java tells a thing at a time, a dozen for each file; but all of them are told as one text. A
    path that is misread is that of no file in the state that is told, and the frame is left to
    Spark.
    """
    text = folders.mkString()
    found = [
        _File(path, State(int(size), int(written_ms)), {})
        for path, size, written_ms in _PRINTED.findall(text)
    ]
    return found if len(found) == text.count("FileStatusWithMetadata(") else None


def _told(folders: Any, relation: Any, types: Mapping[str, str]) -> Iterator[_File]:
    """The files of folders, with the columns that the names of these give."""
    for folder in _items(folders):
        constants = _constants(relation.partitionSchema(), folder.values(), types)
        for one in _items(folder.files()):
            place = one.getPath().toUri()
            if place.getScheme() != "file":
                raise _NoScan(f"its files are on the file system {place.getScheme()}")
            listed = State(one.getLen(), one.getModificationTime())
            yield _File(place.getPath(), listed, constants)


def _constants(schema: Any, values: Any, types: Mapping[str, str]) -> dict[str, Value]:
    """The columns that are needed and given by the names of folders."""
    found = dict[str, Value]()
    for place, name in enumerate(schema.fieldNames()):
        if name not in types:
            continue
        data_type = schema.apply(place).dataType().simpleString()
        if data_type not in CONSTANTS or types[name] != data_type:
            raise _NoScan(f"its column {name}, given by folders, is of type {data_type}")
        if values.isNullAt(place):
            found[name] = None
        elif data_type == "string":
            found[name] = values.getUTF8String(place).toString()
        else:
            found[name] = values.getInt(place) if data_type == "int" else values.getLong(place)
    return found


def _tasks(files: Sequence[_File], types: Mapping[str, str]) -> tuple[tuple[Piece, ...], ...]:
    """The row groups of files, about as many rows to a task as are packed together."""
    tasks, held, count = list[tuple[Piece, ...]](), list[Piece](), 0
    for piece in _pieces(files, types):
        held.append(piece)
        count += piece.rows
        if count >= ROWS_TOGETHER:
            tasks.append(tuple(held))
            held, count = [], 0
    return (*tasks, tuple(held)) if held else tuple(tasks)


def _pieces(files: Sequence[_File], types: Mapping[str, str]) -> Iterator[Piece]:
    """The row groups of files in their order, small ones that are alike together."""
    held, count = list[Group](), 0
    for is_alike, groups in _groups(files, types):
        for place, group in enumerate(groups):
            if held and (count + group.rows > ROWS_JOINED or (place == 0 and not is_alike)):
                yield Piece(tuple(held))
                held, count = [], 0
            held.append(group)
            count += group.rows
    if held:
        yield Piece(tuple(held))


def _groups(
    files: Sequence[_File], types: Mapping[str, str]
) -> Iterator[tuple[bool, tuple[Group, ...]]]:
    """The row groups of each file, and whether it is like the one before, which says all that there
    is to say of its columns.
    """
    before = None
    for one in files:
        fields = {name: kind for name, kind in types.items() if name not in one.constants}
        try:
            metadata = pq.read_metadata(one.path)
            folders = {name: type(value) for name, value in one.constants.items()}
            kind = metadata.schema, metadata.metadata, folders
            is_alike = kind == before
            if not is_alike:
                with opened(one.path) as file:
                    _refuse(one, unlike(file, fields))
        except (OSError, pa.ArrowException) as error:
            raise _NoScan(f"file {one.path} cannot be read here: {error}") from error
        _refuse(one, unread(metadata, fields))
        yield is_alike, Group.all_of(one.path, one.state, metadata, one.constants)
        before = kind


def _refuse(one: _File, reason: str | None) -> None:
    if reason is not None:
        raise _NoScan(f"of file {one.path}, {reason}")
