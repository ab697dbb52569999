#!/usr/bin/env python3
"""The manifests of examples/kubernetes: their fields are those of the published custom resource definitions, and what a pod of
theirs runs becomes the ranks that are meant.

    kubernetes_test.py --fields CRD.yaml...     writes tests/data/kubernetes/fields.json from definitions, for the fields used
"""
import glob
import json
import os
import re
import sys

import yaml

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FIELDS = os.path.join(ROOT, "tests", "data", "kubernetes", "fields.json")
MANIFESTS = sorted(glob.glob(os.path.join(ROOT, "examples", "kubernetes", "*.yaml")))
TYPES = {"string": str, "integer": int, "boolean": bool, "object": dict, "array": list}


def read(path):
    with open(path) as file:
        return yaml.safe_load(file)


def fields_of(schema, value):
    """The part of a schema that a value uses: types, and what each object requires."""
    if schema.get("x-kubernetes-int-or-string"):
        return {"type": "string or integer"}
    kind = schema.get("type")
    if kind == "object" and "properties" in schema and isinstance(value, dict):
        return {"type": kind, "required": schema.get("required", []),
                "fields": {name: fields_of(schema["properties"][name], one) for name, one in value.items() if name in schema["properties"]}}
    if kind == "object" and isinstance(value, dict) and "additionalProperties" in schema:
        return {"type": kind, "any": fields_of(schema["additionalProperties"], next(iter(value.values()), None))}
    if kind == "array" and isinstance(value, list):
        used = {}
        for one in value:
            merge(used, fields_of(schema["items"], one))
        return {"type": kind, "items": used}
    return {"type": kind, **({"enum": schema["enum"]} if "enum" in schema else {})}


def merge(into, more):
    for name, value in more.items():
        if isinstance(value, dict) and isinstance(into.get(name), dict):
            merge(into[name], value)
        else:
            into[name] = value


def definition(manifest, paths):
    group, version = manifest["apiVersion"].split("/")
    for path in paths:
        found = read(path)["spec"]
        if found["group"] == group and found["names"]["kind"] == manifest["kind"]:
            return next(one["schema"]["openAPIV3Schema"] for one in found["versions"] if one["name"] == version)
    sys.exit("no definition of %s %s" % (manifest["kind"], manifest["apiVersion"]))


def write_fields(paths):
    found = {}
    for path in MANIFESTS:
        manifest = read(path)
        found["%s %s" % (manifest["kind"], manifest["apiVersion"])] = fields_of(definition(manifest, paths)["properties"]["spec"], manifest["spec"])
    with open(FIELDS, "w") as file:
        json.dump(found, file, indent=1, sort_keys=True)
        file.write("\n")


def faults(fields, value, at):
    """What a definition refuses, or a server would drop without a word."""
    kind = fields["type"]
    if kind == "string or integer":
        return [] if isinstance(value, (str, int)) else ["%s: not a quantity" % at]
    if not isinstance(value, TYPES[kind]) or (kind == "integer" and isinstance(value, bool)):
        return ["%s: not of type %s" % (at, kind)]
    if "enum" in fields and value not in fields["enum"]:
        return ["%s: not one of %s" % (at, fields["enum"])]
    found = []
    if "fields" in fields:
        found += ["%s.%s is missing" % (at, name) for name in fields["required"] if name not in value]
        for name, one in value.items():
            found += faults(fields["fields"][name], one, "%s.%s" % (at, name)) if name in fields["fields"] else ["%s.%s is no field" % (at, name)]
    elif "any" in fields:
        found = [fault for name, one in value.items() for fault in faults(fields["any"], one, "%s.%s" % (at, name))]
    elif "items" in fields:
        found = [fault for number, one in enumerate(value) for fault in faults(fields["items"], one, "%s[%d]" % (at, number))]
    return found


if len(sys.argv) > 2 and sys.argv[1] == "--fields":
    write_fields(sys.argv[2:])
    sys.exit()

import support  # noqa: E402
from support import clean_env, machine  # noqa: E402

# What the controller puts into the second pod. Sources: kubeflow/trainer 8c0f505 torch.go, lws 060ab4d pod_utils.go, the Job controller's
# JOB_COMPLETION_INDEX.
SECOND_POD = {
    "TrainJob": {"PET_NNODES": "2", "PET_NODE_RANK": "1", "PET_NPROC_PER_NODE": "8", "PET_MASTER_ADDR": "train-node-0-0.train", "PET_MASTER_PORT": "29500", "JOB_COMPLETION_INDEX": "1"},
    "JobSet": {"JOB_COMPLETION_INDEX": "1"},
    "LeaderWorkerSet": {"LWS_GROUP_SIZE": "2", "LWS_WORKER_INDEX": "1", "LWS_LEADER_ADDRESS": "train-0.train.default"},
}
HEAD = {"LeaderWorkerSet": "train-0.train.default"}


def container(manifest):
    spec = manifest["spec"]
    if manifest["kind"] == "TrainJob":
        return spec["trainer"]
    if manifest["kind"] == "LeaderWorkerSet":
        return spec["leaderWorkerTemplate"]["workerTemplate"]["spec"]["containers"][0]
    return spec["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]["containers"][0]


class Manifests(support.Test):
    def test_fields(self):
        with open(FIELDS) as file:
            known = json.load(file)
        for path in MANIFESTS:
            manifest = read(path)
            with self.subTest(manifest=os.path.basename(path)):
                fields = known["%s %s" % (manifest["kind"], manifest["apiVersion"])]
                self.assertEqual(faults(fields, manifest["spec"], "spec"), [])
                wrong = json.loads(json.dumps(manifest["spec"]).replace('"image"', '"imag"'))
                self.assertNotEqual(faults(fields, wrong, "spec"), [])
        self.assertEqual(len(MANIFESTS), len(known))

    def test_what_the_second_pod_runs(self):
        for path in MANIFESTS:
            manifest = read(path)
            one = container(manifest)
            words = [*one["command"], *one.get("args", [])]
            with self.subTest(manifest=os.path.basename(path)):
                self.assertEqual(words[:2], ["/opt/hpclaunch/bin/hpclaunch", "run"])
                env = clean_env(KUBERNETES_SERVICE_HOST="10.96.0.1", **SECOND_POD[manifest["kind"]])
                done = support.hpclaunch("plan", "--json", "--topology", machine("recorded/epyc-2x32-dies.xml"), *words[2:], env=env)
                self.ok(done)
                plan = json.loads(done.out)
                values = {setting["name"]: setting["value"] for setting in plan["env"]}
                self.assertEqual([values["WORLD_SIZE"], values["MASTER_ADDR"]], ["16", HEAD.get(manifest["kind"], "train-node-0-0.train")])

    def test_the_page_has_them(self):
        with open(os.path.join(ROOT, "docs", "kubernetes.md")) as file:
            page = file.read()
        for path in MANIFESTS:
            self.assertIn("examples/kubernetes/" + os.path.basename(path), page)
        self.assertEqual(sorted(set(re.findall(r"examples/kubernetes/[a-z]+\.yaml", page))), ["examples/kubernetes/" + os.path.basename(path) for path in MANIFESTS])


if __name__ == "__main__":
    support.main()
