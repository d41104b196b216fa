"""Names and schemas of foreign tools, as every vendor takes them (cases MCP-03, MCP-04)."""

import re
from typing import Any

import pytest

from memory.encoding import dumps
from tools.mcp.definitions import MOST_SCHEMAS, MOST_TOOLS, Definition, defined, first_fitting, mended
from tools.mcp.naming import is_server, offered_as, parted
from tools.mcp.schema import MOST_PARTS, Parts, normalised

LEGAL = re.compile(r"[a-zA-Z0-9_-]{1,64}")
TREE = {
    "type": "object",
    "$defs": {"node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}, "v": {"type": "integer"}}}},
    "properties": {"root": {"$ref": "#/$defs/node"}},
}


def of(*tools: Any, server: str = "shop") -> list[Definition]:
    return defined(server, [fit for tool in tools if (fit := mended(tool))])


def listed(name: str, schema: Any, description: str = "") -> dict[str, Any]:
    return {"name": name, "description": description, "inputSchema": schema}


def parts(schema: Any) -> list[dict[str, Any]]:
    """Every schema inside a schema."""
    if not isinstance(schema, dict):
        return []
    below = [*schema.get("properties", {}).values(), *schema.get("anyOf", []), schema.get("items")]
    return [schema, *(part for each in below for part in parts(each))]


def test_mcp_03_one_bad_schema_costs_one_tool() -> None:
    found = of(
        listed("good", {"type": "object", "properties": {"x": {"type": "string"}}, "required": ["x"]}),
        listed("t1", {"type": "object", "properties": {"x": {"type": ["string", "null"]}}}),
        listed("t2", TREE),
        listed("t3", {"anyOf": [{"type": "object", "properties": {"a": {"type": "string"}}}, {"required": ["a"]}]}),
        listed("t4", {}),
        listed("t5", {"type": "object", "properties": {"l": {"type": "array", "items": True}}}),
        listed("t6", "oops"),
        listed("t7", {"type": "object"}, "x" * 200_000),
        listed("t8", {"type": "object", "properties": {"a.b/c d": {"type": "string"}}}),
        "nonsense",
        {"inputSchema": {}},
        listed("elsewhere", {"type": "object", "properties": {"x": {"$ref": "https://example.org/s.json"}}}),
    )
    by_name = {each.name: each for each in found}
    assert {name for name, each in by_name.items() if each.problem} == {"t6", "t8", "elsewhere"}
    for each in found:
        if each.problem:
            continue
        assert each.schema["type"] == "object"
        assert all("type" in part or "anyOf" in part for part in parts(each.schema))
        assert all(isinstance(part.get("type", ""), str) for part in parts(each.schema))
        assert "$ref" not in str(each.schema)
        assert not {"anyOf", "oneOf", "allOf"} & each.schema.keys()
        assert len(each.description) <= 1_001
    assert by_name["good"].schema == {
        "type": "object",
        "properties": {"x": {"type": "string"}},
        "required": ["x"],
    }
    assert by_name["t1"].schema["properties"]["x"] == {"anyOf": [{"type": "string"}, {"type": "null"}]}
    assert by_name["t2"].schema["properties"]["root"]["properties"]["next"] == {"type": "object"}
    assert by_name["t3"].schema["properties"] == {"a": {"type": "string"}}


def test_mcp_03_of_a_server_with_very_many_tools_all_can_be_chosen_from() -> None:
    found = of(*(listed(f"t{n}", {"type": "object", "description": "x" * 900}) for n in range(1_300)))
    assert [each.name for each in found if not each.problem] == [f"t{n}" for n in range(1_300)]
    assert [each.name for each in first_fitting(found)] == [f"t{n}" for n in range(MOST_TOOLS)]


def test_mcp_03_of_large_descriptions_as_many_as_fit_are_proposed() -> None:
    large = {"type": "object", "description": "x" * 15_000}
    found = of(*(listed(f"t{n}", large if n % 2 else {"type": "object"}) for n in range(40)))
    assert sum(len(dumps(each.schema)) for each in first_fitting(found)) <= MOST_SCHEMAS
    assert [each.name for each in first_fitting(found) if each.schema.get("description")] == [
        "t1",
        "t3",
        "t5",
        "t7",
        "t9",
        "t11",
    ]
    assert "more tools than are kept" in of(*(listed(f"t{n}", large) for n in range(200)))[-1].problem


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": {"x": {"$ref": "#"}}},
        {"type": "object", "$defs": {"a": {"$ref": "#/$defs/a"}}, "properties": {"x": {"$ref": "#/$defs/a"}}},
        {"type": "object", "properties": {"x": {"enum": [1, 2]}, "y": {"const": True}, "z": {"properties": {}}}},
        {"type": "object", "properties": {"x": {"allOf": [{"type": "string"}, {"minLength": 2}]}}},
        {"type": "object", "properties": {"x": {"type": "string", "nullable": True, "examples": [1], "if": {}}}},
        {"type": "object", "properties": {"x": {"type": []}, "y": {"anyOf": []}, "z": {"type": "nothing"}}},
        {"type": "object", "required": [1, "x"], "properties": 7},
    ],
)
def test_odd_schemas_are_made_to_fit(schema: dict[str, Any]) -> None:
    made = normalised(schema, Parts(100))
    assert all("type" in part or part.get("anyOf") for part in parts(made))
    assert "$ref" not in str(made)


def test_mcp_03_a_long_chain_of_references_costs_one_tool_at_most() -> None:
    chain = {f"n{n}": {"$ref": f"#/$defs/n{n + 1}"} for n in range(1_400)}
    schema = {"type": "object", "$defs": {**chain, "n1400": {}}, "properties": {"x": {"$ref": "#/$defs/n0"}}}
    good, chained = of(listed("good", {}), listed("t", schema))
    assert (good.problem, chained.problem) == ("", "")
    assert chained.schema["properties"] == {"x": {"type": "object"}}


def test_mcp_03_what_all_tools_of_a_server_refer_to_has_an_end() -> None:
    """Each would be within the bounds of one; together they would hold a worker up."""
    many = [{"$ref": "#/$defs/a"}] * 900
    schema = {"type": "object", "$defs": {"a": {"type": "string"}}, "properties": {"x": {"allOf": many}}}
    found = of(*(listed(f"t{n}", schema) for n in range(60)))
    usable = sum(not each.problem for each in found)
    assert 0 < usable <= MOST_PARTS / 1_800
    assert "at greater length than is read" in found[-1].problem


UNSEEN = ["\u200b", "\u202e", "\u2066", "\U000e0041", "\U000e0100", "\u3164", "\x1b", "\x00", "\ufeff", "\u00ad"]


@pytest.mark.parametrize("sign", UNSEEN)
def test_models_are_told_nothing_that_nobody_sees(sign: str) -> None:
    """Threats T11, T17."""
    part = {
        "type": "string",
        "description": f"a{sign}b",
        "enum": [f"c{sign}d"],
        "default": [{f"e{sign}f": f"g{sign}h"}],
    }
    tools = [listed("t", {"type": "object", "properties": {"x": part}}, f"i{sign}j"), listed(f"t{sign}", {})]
    told, named = of(*tools)
    assert sign not in told.description + str(told.schema)
    assert told.schema["properties"]["x"]["description"].startswith("a")
    assert "nobody sees" in named.problem
    assert "\x00" not in named.name


def test_of_tools_of_one_name_none_can_be_used() -> None:
    found = of(listed("t", {}, "one"), listed("u", {}), listed("t", {}, "two"))
    assert [bool(each.problem) for each in found] == [True, False, True]


def test_references_that_multiply_are_given_up() -> None:
    doubling = {
        f"n{n}": {"type": "object", "properties": {name: {"$ref": f"#/$defs/n{n + 1}"} for name in "abc"}}
        for n in range(9)
    }
    schema = {"type": "object", "$defs": {**doubling, "n9": {}}, "properties": {"x": {"$ref": "#/$defs/n0"}}}
    (found,) = of(listed("t", schema))
    assert "too long" in found.problem


def test_mcp_04_names_are_legal_unique_and_stay() -> None:
    long = "n" * 89
    servers = ["prod-db", "test-db", "send-message", "a_b", "a"]
    tools = ["query", "send_message", "files/read.v2", "名前", f"{long}1", f"{long}2", "c", "b_c", "_b", "x__y"]
    names = {(server, tool): offered_as(server, tool) for server in servers for tool in tools}
    assert len(set(names.values())) == len(names)
    assert all(LEGAL.fullmatch(name) for name in names.values())
    assert all((parted(name) or ("",))[0] == server for (server, _), name in names.items())
    assert names == {(server, tool): offered_as(server, tool) for server in servers for tool in tools}
    assert names["prod-db", "query"] == "prod-db__query"


@pytest.mark.parametrize("name", ["", "a__b", "_a", "a_", "A", "ä", "a b", "a" * 25, "a/b", "a.b"])
def test_names_of_servers_never_hold_what_parts_them_from_tools(name: str) -> None:
    assert not is_server(name)


def test_the_digest_is_of_all_that_is_said() -> None:
    same = [of(listed("t", {"type": "object", "title": "x"}, "d"))[0].digest for _ in range(2)]
    others = [
        of(listed("t", {"type": "object", "title": "y"}, "d")),
        of(listed("t", {"type": "object", "title": "x"}, "d" * 2_000)),
        of(listed("t", {"type": "object", "title": "x"}, "d" * 2_001)),
        of(listed("t", "oops", "d")),
    ]
    assert same[0] == same[1]
    assert len({same[0], *(each[0].digest for each in others)}) == 5
