"""The house stays in order: what the architecture forbids, and neither ruff nor import-linter would see.

Each rule is a function from a source text to the places where it is broken, and is put to a small text of its own.
"""

import ast
import importlib
import inspect
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "skyband"
FILES = sorted(path.relative_to(SOURCE).as_posix() for path in SOURCE.rglob("*.py"))
FAMILIES = {
    "TopK": "objects",
    "Nearest": "objects",
    "TopKPairs": "pairs",
    "TopKDominating": "dominating",
    "TopKGroups": "groups",
}
# What is numbered by its nature: dimensions of arrays, registers of compiled scores, parts of types.
NUMBERED = {"shape", "register", "tuple", "list", "dict", "Annotated", "Literal", "NDArray"}

# Files that do not keep a rule yet. One that does must be taken out.
STILL: dict[str, set[str]] = {
    "slots": {},
    "family": set(),
    "by hand": {},
}


# The rules


def slots(tree, path, known=frozenset()):
    """Scalars in numbered slots: ``meta[3]``, ``meta[NEXT]``, ``table[COUNT, i]``; not ``block.meta[0].count``."""
    if not path.startswith(("algorithms/", "kernels/")):
        return
    known = known | constants_in(tree)
    tuples = {}
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef):
            names = tuples_in(function)
            tuples |= {id(node): names for node in ast.walk(function)}  # the innermost function comes last
    for node in ast.walk(tree):
        if not isinstance(node, ast.Subscript):
            continue
        name, local = named(node.value), isinstance(node.value, ast.Name)
        if not name or name in NUMBERED or name.isupper() or (local and name in tuples.get(id(node), ())):
            continue
        lowest = 0 if name in ("size", "sizes") else 1  # elsewhere, 0 is the first of many, or the only record
        for part in node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]:
            number = isinstance(part, ast.Constant) and type(part.value) is int and part.value >= lowest
            if number or named(part) in known:
                told = f"{ast.unparse(node)} is a numbered slot; declare a named scalar or column (storage/blocks.py)"
                yield f"{path}:{node.lineno}: {told}"
                break


def family(tree, path):
    """Asking for the family of a query, outside the families."""
    room = path.split("/")
    for node in ast.walk(tree):
        told = asks_for_a_family(node)
        mine = {own for name, own in FAMILIES.items() if re.search(rf"\b{name}\b", told)}
        own = room[0] in ("algorithms", "query") and mine == {room[1].removesuffix(".py")}
        if told and not own and room[0] != "families":
            line = getattr(node, "pattern", getattr(node, "subject", node)).lineno
            yield f"{path}:{line}: {told} asks for a family; let the family's object answer (families/)"


def by_hand(tree, path):
    """State of an algorithm that is saved or restored column by column."""
    if not path.startswith("algorithms/"):
        return
    for node in ast.walk(tree):
        if not isinstance(node, ast.FunctionDef):
            continue
        text = ast.unparse(node)
        pairs = [part.value for part in ast.walk(node) if isinstance(part, ast.Yield)]
        yields = any(isinstance(getattr(pair, "elts", [0])[0], ast.Constant | ast.JoinedStr) for pair in pairs)
        takes = re.search(r"\barrays(\[['\"f]|\.items\(\))", text)
        if (node.name == "arrays" and yields and "saved(" not in text) or (
            node.name == "restore" and takes and not re.search(r"restored\(|pool\.restore\(", text)
        ):
            told = f"{node.name}() names columns by hand; declare a block for blocks.saved and blocks.restored"
            yield f"{path}:{node.lineno}: {told}"


RULES = {"slots": lambda tree, path: slots(tree, path, constants()), "family": family, "by hand": by_hand}


# What they look at


@cache
def tree_of(path):
    return ast.parse((SOURCE / path).read_text())


@cache
def constants():
    """The names of all whole numbers of all modules, since they may be imported."""
    return frozenset().union(*(constants_in(tree_of(path)) for path in FILES))


def constants_in(tree):
    """The names of whole numbers of a module, one by one or several at once: ``A = 1``, ``A, B = range(2)``."""
    found = set()
    for node in tree.body:
        for target in node.targets if isinstance(node, ast.Assign) else []:
            several = isinstance(target, ast.Tuple)
            values = node.value.elts if several and isinstance(node.value, ast.Tuple) else [node.value]
            if any(map(is_whole, values)):
                found |= {named(name) for name in (target.elts if several else [target]) if named(name).isupper()}
    return found


def is_whole(value):
    """Whether a value is a whole number, or a row of them."""
    if isinstance(value, ast.Call):
        return named(value.func) == "range"
    return isinstance(value, ast.Constant) and type(value.value) is int


def tuples_in(function):
    """The names in a function that are tuples, not arrays: a part of a tuple may be taken by its place."""
    found = set()
    for argument in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs):
        if argument.annotation is not None and re.match(r"tuple\b|Object\b", ast.unparse(argument.annotation)):
            found.add(argument.arg)
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Tuple):
            found |= {target.id for target in node.targets if isinstance(target, ast.Name)}
        if isinstance(node, ast.For | ast.comprehension) and isinstance(node.target, ast.Name):
            rows = node.iter.elts if isinstance(node.iter, ast.Tuple | ast.List) else []
            if ast.unparse(node.iter).startswith("zip(") or (rows and all(isinstance(row, ast.Tuple) for row in rows)):
                found.add(node.target.id)
    return found


def asks_for_a_family(node):
    """The text of a test for a family, or nothing."""
    if isinstance(node, ast.Compare):
        sides = [node.left, *node.comparators]
        literal = any(isinstance(side, ast.Constant) and side.value in FAMILIES.values() for side in sides)
        if any(isinstance(side, ast.Attribute) and side.attr == "family" for side in sides):
            return ast.unparse(node)
        if literal and any(isinstance(side, ast.Name) and side.id == "family" for side in sides):
            return ast.unparse(node)
        if names_a_family(node) and any(ast.unparse(side).startswith("type(") for side in sides):
            return ast.unparse(node)
    if isinstance(node, ast.Match) and named(node.subject) == "family":
        return ast.unparse(node.subject)
    if isinstance(node, ast.match_case) and names_a_family(node.pattern):
        return ast.unparse(node.pattern)
    if isinstance(node, ast.Call) and named(node.func) in ("isinstance", "issubclass") and names_a_family(node.args[1]):
        return ast.unparse(node)
    return ""


def names_a_family(node):
    return any(named(part) in FAMILIES for part in ast.walk(node))


def named(node):
    """The last name of ``a`` and of ``a.b``."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


# The tests


@pytest.mark.parametrize("rule", RULES)
def test_every_file_keeps_the_rule(rule):
    broken = {path: found for path in FILES if (found := list(RULES[rule](tree_of(path), path)))}
    new = [line for path, found in broken.items() if path not in STILL[rule] for line in found]
    assert not new, "\n".join(["", *new])
    kept = sorted(STILL[rule] - broken.keys())
    assert not kept, f"these keep the rule now, or are gone: take them out of STILL[{rule!r}]: {', '.join(kept)}"


BROKEN = [
    ("slots", "kernels/objects/a.py", "def f(meta):\n    return meta[3]", 1),
    ("slots", "kernels/objects/a.py", "def f(size):\n    size[0] += 1", 1),
    ("slots", "algorithms/pairs/a.py", "NEXT = 4\ndef f(state):\n    state.meta[NEXT] = 1", 1),
    ("slots", "kernels/groups/a.py", "A, B = range(2)\ndef f(table, i):\n    return table[A, i] + table[i, B]", 2),
    ("slots", "kernels/groups/a.py", "A, B = 0, 1\ndef f(space):\n    return space.data[B]", 1),
    ("slots", "kernels/objects/a.py", "from b import TIME\ndef f(x):\n    return x.slots[TIME, 5]", 1),
    ("slots", "kernels/objects/a.py", "import b\ndef f(x):\n    return x.slots[b.TIME]", 1),
    ("slots", "kernels/objects/a.py", "def f(band):\n    band.meta[0].count += 1\n    meta = band.meta[0]", 0),
    ("slots", "kernels/objects/a.py", "def f(x):\n    return x.shape[1], x[0], x[-1], x[1:]", 0),
    ("slots", "kernels/objects/a.py", "def f(of: tuple[int, int]):\n    best = (1, 2)\n    return of[1] + best[1]", 0),
    ("slots", "engine/a.py", "def f(rows):\n    return rows[1]", 0),
    ("family", "engine/a.py", "if query.family == 'pairs': pass", 1),
    ("family", "spark/a.py", "alone = query.family not in ('objects', 'pairs')", 1),
    ("family", "cli/a.py", "family = name\nif family == 'groups': pass", 1),
    ("family", "spark/a.py", "isinstance(a, TopKPairs | TopKGroups) and isinstance(a, (sb.TopK, int))", 2),
    ("family", "engine/a.py", "match query:\n    case TopK():\n        pass", 1),
    ("family", "engine/a.py", "match query.family:\n    case 'pairs':\n        pass", 1),
    ("family", "engine/a.py", "type(query) is Nearest", 1),
    ("family", "algorithms/pairs/a.py", "assert isinstance(query, TopKPairs)", 0),
    ("family", "algorithms/pairs/a.py", "assert isinstance(query, TopKGroups)", 1),
    ("family", "query/groups.py", "isinstance(query, TopKGroups)", 0),
    ("family", "families/a.py", "isinstance(query, TopK) or query.family == 'pairs'", 0),
    ("family", "engine/a.py", "isinstance(query, Query) and query.k == 3 and registry[query.family]", 0),
    ("by hand", "algorithms/a.py", "class A:\n    def arrays(self):\n        yield 'score', self.score", 1),
    ("by hand", "algorithms/a.py", "class A:\n    def arrays(self):\n        yield f'{p}.score', self.score", 1),
    ("by hand", "algorithms/a.py", "class A:\n    def restore(self, arrays):\n        self.x = arrays['x']", 1),
    ("by hand", "algorithms/a.py", "class A:\n    def arrays(self):\n        return blocks.saved(S, [self.s])", 0),
    ("by hand", "algorithms/a.py", "def restore(self, arrays):\n    (self.s,) = blocks.restored(S, arrays)", 0),
]


@pytest.mark.parametrize(("rule", "path", "text", "times"), BROKEN)
def test_a_rule_finds_what_breaks_it(rule, path, text, times):
    tree = ast.parse(text)
    found = list(slots(tree, path, {"TIME"}) if rule == "slots" else RULES[rule](tree, path))
    assert len(found) == times
    assert all(re.match(rf"{path}:\d+: ", line) for line in found)


def test_every_module_says_what_it_is():
    silent = [path for path in FILES if not ast.get_docstring(tree_of(path))]
    assert not silent, f"no docstring: {', '.join(silent)}"


@pytest.mark.parametrize("module", ["skyband", "skyband.testing", "skyband.datasets", "skyband.spark"])
def test_every_public_name_says_what_it_is_for(module):
    if module == "skyband.spark":
        pytest.importorskip("pyspark")
    package, silent = importlib.import_module(module), []
    own = [name for name, thing in vars(package).items() if getattr(thing, "__module__", "") == module]
    for name in getattr(package, "__all__", [name for name in own if not name.startswith("_")]):
        thing = getattr(package, name)
        for called, part in {name: thing, **members(name, thing)}.items():
            doc = vars(part).get("__doc__") if inspect.isclass(part) else inspect.getdoc(part)
            if not doc or doc.startswith(f"{name}("):  # what dataclasses and NamedTuples say by themselves
                silent.append(called)
    assert not silent, f"public and without a docstring: {', '.join(silent)}"


def members(name, thing):
    """The public methods and properties that a class declares."""
    declared = vars(thing).items() if inspect.isclass(thing) else ()
    return {f"{name}.{member}": part for member, part in declared if not member.startswith("_")
            and (inspect.isfunction(part) or isinstance(part, property | classmethod | staticmethod))}  # fmt: skip


def test_the_architecture_names_every_room():
    text = (ROOT / "docs" / "architecture.md").read_text()
    listed = set(re.findall(r"^\| `(\w+)/` \|", text, re.MULTILINE))
    there = {path.parent.name for path in SOURCE.glob("*/__init__.py")}
    assert listed == there, f"in docs/architecture.md or in src/skyband, but not in both: {sorted(listed ^ there)}"
    inner = {path.parent.name for path in SOURCE.glob("*/*/__init__.py")}
    missing = inner - set(re.findall(r"(\w+)/", text))
    assert not missing, f"docs/architecture.md does not name {sorted(missing)}"
