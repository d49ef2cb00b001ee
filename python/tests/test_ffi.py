"""The declarations in crosstalk/_ffi.py are those of include/crosstalk/*.h."""

import ctypes
import glob
import os
import re
import unittest

from common import ROOT

from crosstalk import _ffi, errors

NUMBERS = {
    "void": None,
    "bool": ctypes.c_bool,
    "char": ctypes.c_char,
    "int": ctypes.c_int,
    "long": ctypes.c_long,
    "double": ctypes.c_double,
    "size_t": ctypes.c_size_t,
}
NUMBER_OF_ENUM = ctypes.c_int


def header_text():
    """All headers, without comments and preprocessor lines."""
    text = ""
    for path in sorted(glob.glob(os.path.join(ROOT, "include", "crosstalk", "*.h"))):
        with open(path) as file:
            text += file.read()
    text = re.sub(r"/\*.*?\*/", " ", text, flags=re.S)
    return re.sub(r"^[ \t]*#(?:\\\n|[^\n])*", "", text, flags=re.M)


TEXT = header_text()
ENUMS = set(re.findall(r"typedef enum (\w+)", TEXT))
HANDLES = set(re.findall(r"typedef struct (\w+) \1;", TEXT))


def is_pointer(kind):
    return kind in (ctypes.c_void_p, ctypes.c_char_p) or hasattr(kind, "contents") or hasattr(kind, "_flags_")


def fits(c_type, kind):
    """Does the ctypes type hold what the C type says?"""
    words = re.sub(r"\b(const|struct)\b", " ", c_type)
    name, stars = words.replace("*", " ").strip(), words.count("*")
    if stars:
        if name == "char" and stars == 1:
            return kind in (ctypes.c_char_p, ctypes.c_void_p)
        return is_pointer(kind) and kind is not ctypes.c_char_p
    if name in ENUMS:
        return kind is NUMBER_OF_ENUM
    if name in NUMBERS:
        return kind is NUMBERS[name]
    return kind is getattr(_ffi, name, ())


def functions():
    """Name, result and arguments of every CT_API function."""
    for result, name, arguments in re.findall(r"CT_API\s+([\w\s*]+?)\s*(\bct_\w+)\(([^;]*)\);", TEXT):
        parts = [] if arguments.strip() == "void" else [part.strip() for part in arguments.split(",")]
        yield name, result, [re.sub(r"\w+$", "", part) for part in parts]


def structs():
    """Name and fields of every struct with a body: (type, name, length or None)."""
    for body, name in re.findall(r"typedef struct \w+ \{(.*?)\}\s*(\w+);", TEXT, flags=re.S):
        yield name, [field for line in body.split(";") if line.strip() for field in fields(line.strip())]


def fields(line):
    function = re.match(r".*?\(\*(\w+)\)\(", line, flags=re.S)
    if function:
        yield "function *", function[1], None
        return
    rows = re.match(r"(.*?)\(\*(\w+)\)\[2\]", line)
    if rows:
        yield rows[1] + "*", rows[2], None
        return
    first, *others = line.split(",")
    base, name = re.match(r"(.*?[\s*])(\w+(?:\[\w+\])?)$", first.strip(), flags=re.S).groups()
    for declared in (name, *others):
        stars = declared.count("*")
        plain = re.match(r"(\w+)(?:\[(\w+)\])?$", declared.replace("*", "").strip())
        length = plain[2] and (int(plain[2]) if plain[2].isdigit() else _ffi.MAX_DIMS)
        yield (base if declared is name else base.replace("*", "")) + "*" * stars, plain[1], length


class Declarations(unittest.TestCase):
    def test_every_function_is_declared_and_no_other(self):
        self.assertEqual(sorted(name for name, _, _ in functions()), sorted(_ffi.FUNCTIONS))
        self.assertGreater(len(_ffi.FUNCTIONS), 50)

    def test_results_and_arguments_are_those_of_the_headers(self):
        for name, result, arguments in functions():
            kind, kinds = _ffi.FUNCTIONS[name]
            self.assertTrue(fits(result, kind), f"{name} returns {result}, declared {kind}")
            self.assertEqual(len(arguments), len(kinds), name)
            for k, (c_type, own) in enumerate(zip(arguments, kinds)):
                self.assertTrue(fits(c_type, own), f"{name}, argument {k}: {c_type}, declared {own}")

    def test_structs_have_the_fields_of_the_headers(self):
        seen = 0
        for name, wanted in structs():
            own = getattr(_ffi, name)._fields_
            self.assertEqual([field for _, field, _ in wanted], [field for field, _ in own], name)
            for (c_type, field, length), (_, kind) in zip(wanted, own):
                if length is not None:
                    self.assertEqual(kind._length_, length, f"{name}.{field}")
                    kind = kind._type_
                self.assertTrue(fits(c_type, kind), f"{name}.{field} is {c_type}, declared {kind}")
            seen += 1
        self.assertGreaterEqual(seen, 11)

    def test_statuses_are_numbered_alike(self):
        body = re.search(r"typedef enum ct_status \{(.*?)\}", TEXT, flags=re.S)[1]
        names = re.findall(r"CT_(\w+)", body)
        self.assertEqual(names, [status.name for status in errors.Status])
        self.assertEqual(list(range(len(names))), [status.value for status in errors.Status])


if __name__ == "__main__":
    unittest.main()
