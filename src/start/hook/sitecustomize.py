"""hpclaunch run --profile-start puts this directory in front of PYTHONPATH: Python imports it before the program.

It appends lines to the file that the shim has begun for this rank, each with seconds of CLOCK_MONOTONIC:
    python AT | prefix DIR | import AT | imported AT RUNNING DELAYED DIR | rendezvous FROM TO | collective FROM TO NAME
RUNNING and DELAYED: seconds that the import ran, and waited for a processor. Nothing of it stays behind: wrappers go
after their first call, and a sitecustomize of the user or of the distribution runs as without us.
"""
import os
import sys
import time

_here = os.path.dirname(os.path.abspath(__file__))
_file = os.environ.pop("HPCLAUNCH_START", "") + "/" + os.environ.pop("HPCLAUNCH_START_RANK", "")
_seen = set()


def _stamp(word, *values):
    if word in _seen:
        return
    _seen.add(word)
    line = " ".join([word] + ["%.6f" % one if isinstance(one, float) else str(one) for one in values]) + "\n"
    try:
        out = os.open(_file, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)  # the shim has made it
        os.write(out, line.encode("utf-8", "surrogateescape"))
        os.close(out)
    except OSError:
        pass  # the rank's line is incomplete then, and the table shows that


def _processor():
    """Seconds that the main thread ran, and that it was ready to run and did not."""
    try:
        with open("/proc/self/schedstat") as file:
            ran, delayed = file.read().split()[:2]
        return int(ran) / 1e9, int(delayed) / 1e9
    except (OSError, ValueError):
        return time.process_time(), 0.0


class _Timed:
    """A finder that stands before the others until torch and torch.distributed are imported."""

    waits_for = {"torch", "torch.distributed"}

    def find_spec(self, name, path=None, target=None):
        if name not in self.waits_for:
            return None
        self.waits_for = self.waits_for - {name}
        begun, processor = time.monotonic(), _processor()
        if name == "torch":
            _stamp("import", begun)
        spec = None
        for finder in sys.meta_path:
            if finder is not self and hasattr(finder, "find_spec"):
                spec = finder.find_spec(name, path, target)
                if spec is not None:
                    break
        loader = getattr(spec, "loader", None)
        if not hasattr(loader, "exec_module"):
            return spec
        load = loader.exec_module

        def exec_module(module):
            del loader.exec_module
            load(module)
            if name == "torch":
                ran, delayed = _processor()
                _stamp("imported", time.monotonic(), ran - processor[0], delayed - processor[1],
                       os.path.dirname(getattr(module, "__file__", None) or ""))
            else:
                _wrap(module, ["init_process_group"], "rendezvous")
                _wrap(module, _COLLECTIVES, "collective")

        try:
            loader.exec_module = exec_module
        except AttributeError:
            pass
        return spec


_COLLECTIVES = """all_gather all_gather_coalesced all_gather_into_tensor _all_gather_base all_gather_object all_reduce
all_reduce_coalesced all_to_all all_to_all_single barrier broadcast broadcast_object_list gather gather_object
monitored_barrier reduce reduce_scatter reduce_scatter_tensor _reduce_scatter_base scatter scatter_object_list
_broadcast_coalesced _verify_params_across_processes""".split()


def _wrap(module, names, word):
    import functools
    originals = {name: getattr(module, name) for name in names if callable(getattr(module, name, None))}

    def wrapper_of(name, original):
        @functools.wraps(original)
        def first_call(*arguments, **keywords):
            if word in _seen:
                return original(*arguments, **keywords)
            for other, before in originals.items():
                setattr(module, other, before)
            begun = time.monotonic()
            result = original(*arguments, **keywords)
            _stamp(word, begun, time.monotonic(), name)
            return result

        return first_call

    for name, original in originals.items():
        setattr(module, name, wrapper_of(name, original))


def _others_own():
    """Runs the sitecustomize that this one hides."""
    rest = os.pathsep.join(one for one in os.environ.pop("PYTHONPATH", "").split(os.pathsep) if one != _here)
    if rest:
        os.environ["PYTHONPATH"] = rest
    sys.path[:] = [one for one in sys.path if os.path.abspath(one) != _here]
    import _frozen_importlib as machinery
    for finder in sys.meta_path:
        spec = finder.find_spec(__name__, None) if hasattr(finder, "find_spec") else None
        if spec is not None and spec.loader is not None:
            module = machinery.module_from_spec(spec)
            sys.modules[__name__] = module
            spec.loader.exec_module(module)
            return


if len(_file) > 1:
    _stamp("python", time.monotonic())
    _stamp("prefix", sys.prefix)
    sys.meta_path.insert(0, _Timed())
_others_own()
