"""Our ONNX messages against the onnx package's own descriptors: every field, number, type and packing."""

import re
from pathlib import Path

import onnx
import pytest
from google.protobuf.descriptor import FieldDescriptor

FOLDER = Path(__file__).resolve().parents[2] / "crates" / "onnx" / "schema"
SCHEMA = "\n".join(path.read_text() for path in sorted(FOLDER.glob("*.rs")))
KINDS = {
    FieldDescriptor.TYPE_INT32: "int32", FieldDescriptor.TYPE_INT64: "int64", FieldDescriptor.TYPE_UINT64: "uint64",
    FieldDescriptor.TYPE_FLOAT: "float", FieldDescriptor.TYPE_DOUBLE: "double", FieldDescriptor.TYPE_STRING: "string",
    FieldDescriptor.TYPE_BYTES: "bytes", FieldDescriptor.TYPE_MESSAGE: "message", FieldDescriptor.TYPE_ENUM: "enum",
}
NUMERIC = {"int32", "int64", "uint64", "float", "double", "enum"}


def parse(source):
    """Messages, oneofs and enumerations of the Rust files, each a dictionary by name.

    A message or oneof is a list of (name, attributes, type); attributes is the text in `prost(...)`.
    """
    messages, oneofs, enums = {}, {}, {}
    source = re.sub(r"//[^\n]*", "", source)
    for derive, kind, name, body in re.findall(
            r"#\[derive\(([^)]*)\)\](?:\s*#\[[^\]]*\])*\s*pub (struct|enum) (\w+) \{(.*?)\n\}", source, re.S):
        if kind == "struct":
            fields = re.findall(r"#\[prost\(([^)]*)\)\]\s*pub (?:r#)?(\w+): ([^\n]+),\n", body + "\n")
            messages[name] = [(field, attributes, type_) for attributes, field, type_ in fields]
            assert body.count("#[prost(") == len(fields), f"{name}: a field was not understood"
        elif "Oneof" in derive:
            fields = re.findall(r"#\[prost\(([^)]*)\)\]\s*(\w+)\(([^\n]+)\),\n", body + "\n")
            oneofs[name] = [(field, attributes, type_) for attributes, field, type_ in fields]
            assert body.count("#[prost(") == len(fields), f"{name}: a variant was not understood"
        else:
            enums[name] = {variant.lower(): int(number) for variant, number in re.findall(r"(\w+) = (\d+)", body)}
    return messages, oneofs, enums


MESSAGES, ONEOFS, ENUMS = parse(SCHEMA)


def plain(name):
    return name.replace("_", "").lower()


def innermost(type_):
    return re.findall(r"\w+", type_)[-1]


def ours(message):
    """Field number → (name, kind, label, packed, type name, enumeration) as the Rust files say."""
    fields = {}
    for name, attributes, type_ in MESSAGES[message]:
        oneof = re.search(r'oneof = "(\w+)", tags = "([\d, ]+)"', attributes)
        if oneof:
            variants = ONEOFS[oneof[1]]
            numbers = {int(re.search(r'tag = "(\d+)"', a)[1]) for _, a, _ in variants}
            assert numbers == {int(n) for n in oneof[2].split(",")}, f"{message}.{name}: tags of its oneof differ"
            fields.update((field(n, a, t, "oneof")) for n, a, t in variants)
        else:
            label = "repeated" if "repeated" in attributes else "optional"
            assert (label == "repeated") == type_.startswith("Vec<"), f"{message}.{name}: {type_} is not {label}"
            assert (label == "optional") == type_.startswith("Option<"), f"{message}.{name} must keep its presence"
            number, told = field(name, attributes, type_, label)
            fields[number] = told
    return fields


def field(name, attributes, type_, label):
    enumeration = re.search(r'enumeration = "(\w+)"', attributes)
    kind = "enum" if enumeration else re.match(r"\w+", attributes)[0]
    packed = label == "repeated" and kind in NUMERIC and 'packed = "false"' not in attributes
    number = int(re.search(r'tag = "(\d+)"', attributes)[1])
    return number, (plain(name), kind, label, packed, innermost(type_), enumeration and enumeration[1])


def theirs(descriptor):
    fields = {}
    for f in descriptor.fields:
        label = "oneof" if f.containing_oneof else "repeated" if f.is_repeated else "optional"
        fields[f.number] = (plain(f.name), KINDS[f.type], label, f.is_repeated and f.is_packed)
    return fields


def pairs():
    """Every message reachable from ModelProto, with the Rust struct that stands for it."""
    found, todo = {}, [("ModelProto", onnx.ModelProto.DESCRIPTOR)]
    while todo:
        name, descriptor = todo.pop()
        if found.get(descriptor.full_name) == name:
            continue
        found[descriptor.full_name] = name
        yield pytest.param(name, descriptor, id=descriptor.full_name)
        known = ours(name) if name in MESSAGES else {}
        for f in descriptor.fields:
            if f.message_type is not None and f.number in known:
                todo.append((known[f.number][4], f.message_type))


@pytest.mark.parametrize("name, descriptor", list(pairs()))
def test_message_has_the_same_fields(name, descriptor):
    mine = {number: told[:4] for number, told in ours(name).items()}
    assert mine == theirs(descriptor)


@pytest.mark.parametrize("name, descriptor", list(pairs()))
def test_enumerations_have_the_same_values(name, descriptor):
    known = ours(name)
    for f in descriptor.fields:
        if f.enum_type is not None:
            assert same_values(ENUMS[known[f.number][5]], f.enum_type), f"{name}.{f.name}"


def same_values(mine, descriptor):
    return mine == {plain(value.name): value.number for value in descriptor.values}


def test_element_types_are_the_packages():
    # In the file they are plain numbers, so no field leads there.
    assert same_values(ENUMS["DataType"], onnx.TensorProto.DataType.DESCRIPTOR)


def test_every_message_of_ours_is_one_of_theirs():
    reached = {param.values[0] for param in pairs()}
    assert set(MESSAGES) == reached


def test_the_newest_ir_version_is_the_packages():
    newest = int(re.search(r"NEWEST_IR_VERSION: i64 = (\d+)", SCHEMA)[1])
    assert newest == onnx.IR_VERSION
