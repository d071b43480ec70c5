"""The verdicts of the Berkeley Function Calling Leaderboard's own checker, to compare ours with.

Reads one case a line from standard input: {"category", "function", "answer", "calls": [[name, text]]}, where `text` is
what a model wrote as the input of its call. Writes one word a line: `right`, `wrong` or `crash`.

Needs the package `bfcl-eval` and none of the packages that it depends on: the checker asks its table of models for one
thing only, whether a model's API takes dots in names. Ours sees the original names, so the answer is "it does".
"""

import json
import sys
import types


def stand_in(name, **members):
    module = types.ModuleType(name)
    vars(module).update(members)
    sys.modules[name] = module


class Models(dict):
    def __missing__(self, name):
        return types.SimpleNamespace(underscore_to_dot=False)


stand_in("bfcl_eval.constants.model_config", MODEL_CONFIG_MAPPING=Models())
# Texts in Java and JavaScript, which need parsers of these languages.
for language in ("java", "js"):
    converter = f"{language}_type_converter"
    stand_in(f"bfcl_eval.eval_checker.ast_eval.type_convertor.{converter}", **{converter: None})

from bfcl_eval.constants.enums import Language  # noqa: E402
from bfcl_eval.eval_checker.ast_eval.ast_checker import ast_checker  # noqa: E402


def decoded(calls):
    """As the handlers of models with function calling decode an answer; None if there is none to judge."""
    try:
        found = [{name: json.loads(text)} for name, text in calls]
    except ValueError:
        return None
    # What is no call with named arguments, and an answer without a call, is a text to the benchmark.
    if not found or not all(isinstance(arguments, dict) for one in found for arguments in one.values()):
        return None
    return found


def verdict(case):
    found = decoded(case["calls"])
    if "irrelevance" in case["category"]:
        return "right" if found is None else "wrong"
    if found is None:
        return "wrong"
    try:
        checked = ast_checker(
            case["function"], found, case["answer"], Language.PYTHON, case["category"], "any"
        )
    except Exception:
        return "crash"
    return "right" if checked["valid"] else "wrong"


for line in sys.stdin:
    print(verdict(json.loads(line)))
