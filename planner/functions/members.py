"""Members of UNIONs: which one a value becomes, and what a cast refuses, whatever the value is, as it has no such member or field."""

from __future__ import annotations

from tqp.core.datatypes import UTINYINT, VARCHAR, DataType, TypeKind
from tqp.core.errors import BindError
from tqp.core.keywords import lower_ascii, quoted
from tqp.planner.algebra.expressions import Literal
from tqp.planner.functions.type_rules import TARGET_COST_OF_JSON, implicit_cast_cost


def cast_field(source: DataType, target: DataType, place: int) -> int | None:
    """Where in one STRUCT the field stands that another one, cast from it, has at a place; None: it is NULL there.

    Raises BindError where no field of the two belongs to another.
    """
    if source.is_tuple or target.is_tuple:
        if len(source.names) != len(target.names):
            raise BindError(f"cannot cast {source} to {target}, which has another number of fields")
        return place
    names = [lower_ascii(name) for name in source.names]
    if not any(lower_ascii(name) in names for name in target.names):
        raise BindError(f"cannot cast {source} to {target}: they have no field in common")
    wanted = lower_ascii(target.names[place])
    return names.index(wanted) if wanted in names else None


def check_fields(source: DataType, target: DataType) -> None:
    """Raises BindError where a STRUCT, maybe deep inside, is cast to one with no field in common, whatever the value is.

    And where there is no member for what becomes a UNION.
    """
    if source == target or source.kind is TypeKind.NULL:
        return
    if target.is_union and not has_fields_of(source, target):
        place = member_for(source, target)
        if place is not None:
            check_fields(source, target.children[place])
            return
        for child, member in zip(source.children[1:], member_places(source, target), strict=True):
            check_fields(child, target.children[member])
    if source.kind is not target.kind:
        return
    if source.kind is TypeKind.STRUCT:
        for place, child in enumerate(target.children):
            found = cast_field(source, target, place)
            if found is not None:
                check_fields(source.children[found], child)
    elif source.kind in (TypeKind.LIST, TypeKind.MAP, TypeKind.ARRAY):
        check_fields(source.element, target.element)


def member_for(source: DataType, target: DataType) -> int | None:
    """The place, among the children of a UNION, of the member that values of a type become; None for a UNION with just such members.

    It is the member to which the implicit cast costs least. Raises BindError where there is none, and where there are several.
    """
    if target.has_members_of(source):
        return None
    members = list(target.members.items())
    costs = {place: _member_cost(source, each) for place, (_, each) in enumerate(members, 1)}
    possible = {place: cost for place, cost in costs.items() if cost is not None}
    if not possible:
        types = ", ".join(map(str, dict.fromkeys(target.members.values())))
        missing = (
            [name for name in source.members if not _position_of(name, target)] if source.is_union else []
        )
        what = f'it has no member "{missing[0]}"' if missing else f"its members are {types}"
        raise BindError(f"cannot cast {source} to {target}: {what}; cast the value to a member first")
    least = min(possible.values())
    nearest = [place for place, cost in possible.items() if cost == least]
    if len(nearest) > 1:
        first, second = (members[place - 1][0] for place in nearest[:2])
        raise BindError(
            f'cannot cast {source} to {target}, whose members "{first}" and "{second}" are equally near:'
            f" name one with union_value({quoted(first)} := ...)"
        )
    return nearest[0]


def _member_cost(source: DataType, member: DataType) -> int | None:
    """What it costs to make a value a member: besides implicit casts, text may be JSON, and a list an array."""
    if source == VARCHAR and member.is_json:
        return TARGET_COST_OF_JSON
    if source.kind is TypeKind.LIST and member.kind is TypeKind.ARRAY:
        cost = _member_cost(source.element, member.element)
        return None if cost is None else cost + 1
    return implicit_cast_cost(Literal(None, source), member)


def has_fields_of(source: DataType, target: DataType) -> bool:
    """Is it a STRUCT of the tag, as a UTINYINT, and the members of a UNION, as a Parquet file has them? A member may be text."""
    if source.kind is not TypeKind.STRUCT or source.is_tuple or len(source.children) != len(target.children):
        return False
    pairs = zip(source.children[1:], target.children[1:], strict=True)
    return (
        source.children[0] == UTINYINT
        and list(map(lower_ascii, source.names[1:])) == list(map(lower_ascii, target.names[1:]))
        and all(one in (other, VARCHAR) for one, other in pairs)
    )


def member_places(source: DataType, target: DataType) -> list[int]:
    """For each member of a UNION, its place among the children of another one that has them all."""
    return [_position_of(name, target) for name in source.members]


def _position_of(member: str, union: DataType) -> int:
    """The place of a member among the children; 0 where there is none of its name."""
    names = [lower_ascii(name) for name in union.names]
    return names.index(lower_ascii(member)) if lower_ascii(member) in names else 0
