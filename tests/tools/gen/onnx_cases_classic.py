# SPDX-License-Identifier: Apache-2.0
"""Cases of ai.onnx.ml for gen_onnx_cases.py: tree ensembles and support vector machines as
converters of scikit-learn, LightGBM and XGBoost write them."""
import math


def floats(values):
    return {"type": "floats", "value": [float(x) for x in values]}


def ints(values):
    return {"type": "ints", "value": [int(x) for x in values]}


def text(value):
    return {"type": "string", "value": value}


def texts(values):
    return {"type": "strings", "value": list(values)}


def number(value):
    return {"type": "int", "value": value}


def tensor(dtype, dims, data):
    return {"dtype": dtype, "dims": list(dims), "data": list(data)}


def tensor_attribute(dtype, data):
    return {"type": "tensor", "value": tensor(dtype, [len(data)], data)}


def matrix(numbers, rows, columns, dtype="float32"):
    data = [round(numbers.uniform(-3, 3), 2) for _ in range(rows * columns)]
    return tensor(dtype, [rows, columns], data)


def case(name, op, attributes, x, made, opset=3):
    """A case of ai.onnx.ml with one input; `made` has the types of the outputs."""
    return {
        "id": f"ai.onnx.ml/{op}/{name}",
        "op": op,
        "domain": "ai.onnx.ml",
        "opset": opset,
        "attributes": attributes,
        "inputs": [x],
        "made": made,
    }


# --- tree ensembles ---


def grow(numbers, features, depth, modes):
    """A random tree as a list of nodes (mode, feature, value, true, false); leaves have no mode."""
    nodes = []

    def add(level):
        at = len(nodes)
        nodes.append(None)
        if level == 0 or (level < depth and numbers.random() < 0.2):
            nodes[at] = ("LEAF", 0, 0.0, 0, 0)
            return at
        mode, feature = numbers.choice(modes), numbers.randrange(features)
        value = round(numbers.uniform(-2, 2), 1)
        left = add(level - 1)
        right = add(level - 1)
        nodes[at] = (mode, feature, value, left, right)
        return at

    add(depth)
    return nodes


def list_nodes(trees):
    """The attributes nodes_* of trees."""
    rows = [(tree, i, *node) for tree, nodes in enumerate(trees) for i, node in enumerate(nodes)]
    return {
        "nodes_treeids": ints(row[0] for row in rows),
        "nodes_nodeids": ints(row[1] for row in rows),
        "nodes_modes": texts(row[2] for row in rows),
        "nodes_featureids": ints(row[3] for row in rows),
        "nodes_values": floats(row[4] for row in rows),
        "nodes_truenodeids": ints(row[5] for row in rows),
        "nodes_falsenodeids": ints(row[6] for row in rows),
    }


def list_weights(numbers, trees, prefix, ids, low=-2.0):
    """The attributes of the weights: each leaf has one for each id that `ids` chooses."""
    rows = [
        (tree, i, target, round(numbers.uniform(low, 2), 2))
        for tree, nodes in enumerate(trees)
        for i, node in enumerate(nodes)
        if node[0] == "LEAF"
        for target in ids()
    ]
    return {
        f"{prefix}_treeids": ints(row[0] for row in rows),
        f"{prefix}_nodeids": ints(row[1] for row in rows),
        f"{prefix}_ids": ints(row[2] for row in rows),
        f"{prefix}_weights": floats(row[3] for row in rows),
    }


def list_regressors(numbers):
    cases = []
    modes = ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"]
    for function in ("SUM", "AVERAGE", "MIN", "MAX"):
        for name, used in (("leq", modes[:1]), ("mixed", modes)):
            trees = [grow(numbers, 3, 4, used) for _ in range(5)]
            attributes = list_nodes(trees)
            attributes.update(
                list_weights(numbers, trees, "target", lambda: range(2))
            )
            attributes["n_targets"] = number(2)
            attributes["aggregate_function"] = text(function)
            if used != modes:
                attributes["base_values"] = floats([0.5, -1])
            x = matrix(numbers, 7, 3)
            cases.append(
                case(f"{function.lower()}-{name}", "TreeEnsembleRegressor", attributes, x,
                     ["float32"])
            )
    # Doubles: values are compared as doubles, so 0.1 is not FP32's 0.1.
    trees = [grow(numbers, 2, 3, modes[:1]) for _ in range(3)]
    attributes = list_nodes(trees)
    attributes["nodes_values_as_tensor"] = tensor_attribute(
        "float64", attributes.pop("nodes_values")["value"]
    )
    weights = list_weights(numbers, trees, "target", lambda: [0])
    weights["target_weights_as_tensor"] = tensor_attribute(
        "float64", weights.pop("target_weights")["value"]
    )
    attributes.update(weights, n_targets=number(1))
    x = matrix(numbers, 6, 2, "float64")
    x["data"] = [round(value, 1) for value in x["data"]]
    cases.append(case("doubles", "TreeEnsembleRegressor", attributes, x, ["float32"]))
    for transform in ("LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO", "PROBIT"):
        trees = [[("LEAF", 0, 0.0, 0, 0)], grow(numbers, 2, 2, modes[:1])]
        attributes = list_nodes(trees)
        attributes.update(
            list_weights(numbers, trees, "target", lambda: [0, 1, 2], low=0.0),
            n_targets=number(3),
            post_transform=text(transform),
        )
        if transform == "PROBIT":
            weights = attributes["target_weights"]["value"]
            attributes["target_weights"] = floats(round(x / 5, 3) for x in weights)
        if transform == "SOFTMAX_ZERO":
            weights = attributes["target_weights"]["value"]
            attributes["target_weights"] = floats(x * (i % 3 > 0) for i, x in enumerate(weights))
        cases.append(
            case(transform.lower(), "TreeEnsembleRegressor", attributes, matrix(numbers, 4, 2),
                 ["float32"])
        )
    return cases


def list_classifiers(numbers):
    cases = []
    made = ["int64", "float32"]
    # Two classes with weights for both: there the runtime's label is not that of the largest score.
    for classes in (3, 4):
        for transform in ("NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO"):
            for base in (False, True):
                trees = [grow(numbers, 3, 3, ["BRANCH_LEQ"]) for _ in range(4)]
                attributes = list_nodes(trees)
                attributes.update(
                    list_weights(numbers, trees, "class", lambda: range(classes), low=-1.0),
                    classlabels_int64s=ints(range(5, 5 + classes)),
                    post_transform=text(transform),
                )
                if base:
                    attributes["base_values"] = floats([0.25, -0.5, 0.125, 0][:classes])
                name = f"{classes}-{transform.lower()}" + "-base" * base
                cases.append(
                    case(name, "TreeEnsembleClassifier", attributes, matrix(numbers, 8, 3), made)
                )
    # Two classes, one of which has weights: LightGBM's, XGBoost's and gradient boosting's form.
    for only in (0, 1):
        for low in (0.0, -2.0):
            for transform in ("NONE", "LOGISTIC", "SOFTMAX"):
                # The runtime ignores the base of weights that are for class 1 alone.
                for base in (0, 1)[: 2 - only]:
                    trees = [grow(numbers, 3, 3, ["BRANCH_LEQ"]) for _ in range(3)]
                    attributes = list_nodes(trees)
                    attributes.update(
                        list_weights(numbers, trees, "class", lambda: [only], low),
                        classlabels_strings=texts(["no", "yes"]),
                        post_transform=text(transform),
                    )
                    if low == 0.0:
                        weights = attributes["class_weights"]["value"]
                        attributes["class_weights"] = floats(round(x / 6, 3) for x in weights)
                    if base:
                        attributes["base_values"] = floats([0.125])
                    sign = "positive" if low == 0.0 else "mixed"
                    name = f"only-{only}-{sign}-{transform.lower()}" + "-base" * base
                    x = matrix(numbers, 8, 3)
                    cases.append(
                        case(name, "TreeEnsembleClassifier", attributes, x, ["string", "float32"])
                    )
    return cases


def list_ensembles(numbers):
    """TreeEnsemble of version 5, whose inner nodes and leaves are separate lists."""
    cases = []
    modes = ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"]
    for aggregate in range(4):
        for dtype in ("float32", "float64"):
            for members in (False, True):
                inner, leaves, roots, sets = [], [], [], []
                for _ in range(3):
                    nodes = grow(numbers, 3, 3, modes[:1] if aggregate == 1 else modes)
                    if nodes[0][0] == "LEAF":
                        continue
                    places = {}
                    for i, node in enumerate(nodes):
                        is_leaf = node[0] == "LEAF"
                        places[i] = (is_leaf, len(leaves) if is_leaf else len(inner))
                        (leaves if is_leaf else inner).append(node)
                        if i == 0:
                            roots.append(places[i][1])
                    first = roots[-1]
                    for at in range(first, len(inner)):
                        node = inner[at]
                        mode = modes.index(node[0])
                        if members and at % 2 == 0:
                            mode = 6
                            sets += [float(numbers.randrange(4)) for _ in range(1 + at % 3)]
                            sets.append(math.nan)
                        inner[at] = (mode, *node[1:3], places[node[3]], places[node[4]])
                attributes = {
                    "tree_roots": ints(roots),
                    "nodes_modes": tensor_attribute("uint8", [node[0] for node in inner]),
                    "nodes_featureids": ints(node[1] for node in inner),
                    "nodes_splits": tensor_attribute(
                        dtype, [float(round(node[2])) for node in inner]
                    ),
                    "nodes_truenodeids": ints(node[3][1] for node in inner),
                    "nodes_trueleafs": ints(node[3][0] for node in inner),
                    "nodes_falsenodeids": ints(node[4][1] for node in inner),
                    "nodes_falseleafs": ints(node[4][0] for node in inner),
                    "leaf_targetids": ints(i % 2 for i in range(len(leaves))),
                    "leaf_weights": tensor_attribute(
                        dtype, [round(numbers.uniform(-2, 2), 2) for _ in leaves]
                    ),
                    "n_targets": number(2),
                    "aggregate_function": number(aggregate),
                    "post_transform": number(0),
                }
                if members:
                    sets = [x if not math.isnan(x) else "NaN" for x in sets]
                    attributes["membership_values"] = tensor_attribute(dtype, sets)
                x = tensor(dtype, [9, 3], [float(numbers.randrange(-2, 4)) for _ in range(27)])
                name = f"{aggregate}-{dtype}" + "-members" * members
                cases.append(case(name, "TreeEnsemble", attributes, x, [dtype], 5))
    return cases


# --- support vector machines and linear classifiers ---

KERNELS = {"LINEAR": [0, 0, 0], "POLY": [0.5, 1, 3], "RBF": [0.25, 0, 0], "SIGMOID": [0.1, 0.2, 0]}


def list_machines(numbers):
    cases = []
    noise = lambda count: [round(numbers.uniform(-1, 1), 3) for _ in range(count)]
    for kernel, params in KERNELS.items():
        for one_class in (0, 1):
            attributes = {
                "kernel_type": text(kernel),
                "kernel_params": floats(params),
                "support_vectors": floats(noise(5 * 3)),
                "coefficients": floats(noise(5)),
                "n_supports": number(5),
                "rho": floats([0.1]),
                "one_class": number(one_class),
            }
            cases.append(
                case(f"{kernel.lower()}-{one_class}", "SVMRegressor", attributes,
                     matrix(numbers, 6, 3), ["float32"])
            )
    attributes = {"coefficients": floats(noise(3)), "rho": floats([0.5]),
                  "kernel_type": text("LINEAR"), "kernel_params": floats([0, 0, 0])}
    cases.append(case("no-vectors", "SVMRegressor", attributes, matrix(numbers, 6, 3), ["float32"]))
    for classes in (2, 3, 5):
        for kernel, params in KERNELS.items():
            for proba in (False, True):
                counts = [2 + i % 2 for i in range(classes)]
                vectors, pairs = sum(counts), classes * (classes - 1) // 2
                attributes = {
                    "kernel_type": text(kernel),
                    "kernel_params": floats(params),
                    "vectors_per_class": ints(counts),
                    "support_vectors": floats(noise(vectors * 2)),
                    "coefficients": floats(noise(vectors * (classes - 1))),
                    "rho": floats(noise(pairs)),
                    "classlabels_ints": ints(range(3, 3 + classes)),
                }
                if proba:
                    attributes["prob_a"] = floats(x - 1.5 for x in noise(pairs))
                    attributes["prob_b"] = floats(noise(pairs))
                name = f"{classes}-{kernel.lower()}" + "-proba" * proba
                cases.append(
                    case(name, "SVMClassifier", attributes, matrix(numbers, 9, 2),
                         ["int64", "float32"])
                )
    for transform in ("LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO"):
        for classes in (2, 3):
            counts = [2] * classes
            attributes = {
                "kernel_type": text("RBF"),
                "kernel_params": floats([0.5, 0, 0]),
                "vectors_per_class": ints(counts),
                "support_vectors": floats(noise(2 * classes * 2)),
                "coefficients": floats(noise(2 * classes * (classes - 1))),
                "rho": floats(noise(classes * (classes - 1) // 2)),
                "classlabels_strings": texts("abc"[:classes]),
                "post_transform": text(transform),
            }
            name = f"{classes}-{transform.lower()}"
            cases.append(
                case(name, "SVMClassifier", attributes, matrix(numbers, 7, 2),
                     ["string", "float32"])
            )
    attributes = {"coefficients": floats(noise(9)), "rho": floats([0.25]),
                  "kernel_type": text("LINEAR"), "kernel_params": floats([0, 0, 0]),
                  "classlabels_ints": ints([4, 5, 6])}
    cases.append(
        case("no-vectors", "SVMClassifier", attributes, matrix(numbers, 6, 3), ["int64", "float32"])
    )
    return cases


def list_linear(numbers):
    cases = []
    noise = lambda count: [round(numbers.uniform(-1, 1), 3) for _ in range(count)]
    for transform in ("NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO", "PROBIT"):
        for rows in (1, 2, 3):
            attributes = {
                "coefficients": floats(noise(2 * rows)),
                "intercepts": floats(noise(rows)),
                "classlabels_ints": ints([1, 2, 3][: max(rows, 2)]),
                "post_transform": text(transform),
            }
            x = matrix(numbers, 6, 2)
            if transform == "PROBIT" and rows == 1:
                continue  # The runtime leaves a part of the output unwritten.
            if transform == "PROBIT":
                attributes["intercepts"] = floats([0.5] * rows)
                attributes["coefficients"] = floats(x / 20 for x in noise(2 * rows))
            cases.append(
                case(f"{rows}-{transform.lower()}", "LinearClassifier", attributes, x,
                     ["int64", "float32"], 1)
            )
    for transform in ("SOFTMAX_ZERO", "LOGISTIC"):
        attributes = {"coefficients": floats([1, 0, 0, 1, 0, 0]), "targets": number(3),
                      "post_transform": text(transform)}
        cases.append(
            case(transform.lower(), "LinearRegressor", attributes,
                 tensor("float32", [3, 2], [0, 1, 2, 0, -1, 3]), ["float32"], 1)
        )
    return cases


def list_classic_cases(numbers):
    """All cases of this file, with random numbers from `numbers`."""
    return (
        list_regressors(numbers)
        + list_classifiers(numbers)
        + list_ensembles(numbers)
        + list_machines(numbers)
        + list_linear(numbers)
    )
