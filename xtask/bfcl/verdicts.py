"""Prints the verdicts of the checker of the Berkeley Function Calling Leaderboard.

Reads one JSON case per line from standard input:
{"category", "function", "answer", "calls": [[name, text]]}. `text` is the tool input as the model
wrote it. Writes `right`, `wrong` or `crash` per line.

Needs the package `bfcl-eval` without its dependencies. The checker uses its model table only to
find out whether the API of a model allows dots in names. Our scorer compares the original names,
so `Models` reports for every model that dots are allowed.
"""

import json
import sys
import types


def register_stub_module(name, **members):
    module = types.ModuleType(name)
    vars(module).update(members)
    sys.modules[name] = module


class Models(dict):
    def __missing__(self, name):
        return types.SimpleNamespace(underscore_to_dot=False)


register_stub_module("bfcl_eval.constants.model_config", MODEL_CONFIG_MAPPING=Models())
# The converters for Java and JavaScript need parsers for these languages, which are not installed.
for language in ("java", "js"):
    converter = f"{language}_type_converter"
    register_stub_module(
        f"bfcl_eval.eval_checker.ast_eval.type_convertor.{converter}", **{converter: None}
    )

from bfcl_eval.constants.enums import Language  # noqa: E402
from bfcl_eval.eval_checker.ast_eval.ast_checker import ast_checker  # noqa: E402


def decode(calls):
    """Decodes calls like the handlers of the benchmark. Returns None without valid calls."""
    try:
        decoded = [{name: json.loads(text)} for name, text in calls]
    except ValueError:
        return None
    # The benchmark treats an answer as text if it has no calls or a call without named arguments.
    if not decoded or not all(
        isinstance(arguments, dict) for call in decoded for arguments in call.values()
    ):
        return None
    return decoded


def verdict(case):
    calls = decode(case["calls"])
    if "irrelevance" in case["category"]:
        return "right" if calls is None else "wrong"
    if calls is None:
        return "wrong"
    try:
        result = ast_checker(
            case["function"], calls, case["answer"], Language.PYTHON, case["category"], "any"
        )
    except Exception:
        return "crash"
    return "right" if result["valid"] else "wrong"


for line in sys.stdin:
    print(verdict(json.loads(line)))
