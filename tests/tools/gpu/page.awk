# page.awk - writes the report of report.sh from what the steps printed. Run in the folder of the
# steps with their names as arguments; -v out=FOLDER receives the plots. What is wrong is collected
# by problem() and printed at the end of the page.
function problem(what) { problems[++problem_count] = what }
# The exit code of a step: "" if it was not run.
function code_of(name,   line, parts) {
    if ((getline line < (name ".done")) <= 0) return ""
    close(name ".done")
    split(line, parts, " ")
    took[name] = parts[2]
    return parts[1]
}
# What bench_engine printed after "WHAT inferd": "NAME 1 median M p99 P min L".
function median_of(text,   parts, n, i) {
    n = split(text, parts, " ")
    for (i = 1; i < n; i++) if (parts[i] == "median") return parts[i + 1] + 0
    return 0
}
function ms(value) { return value > 0 ? sprintf("%.4g", value) : "-" }
function ratio(a, b) { return a > 0 && b > 0 ? sprintf("%.3g", a / b) : "-" }

FNR == 1 { step = FILENAME; steps[++step_count] = step; lines[step] = 0 }
{ text[step, ++lines[step]] = $0 }
step ~ /^speed-/ && $2 == "inferd" {
    model = substr(step, 7)
    if (!(model in seen)) { seen[model] = 1; models[++model_count] = model }
    speed[model, $1] = median_of($0)
}

# Prints the lines of a step as a block, at most `most` of them.
function block(name, most,   i) {
    print "\n```text"
    for (i = 1; i <= lines[name] && i <= most; i++) print text[name, i]
    if (lines[name] > most) print "... (" lines[name] - most " more lines)"
    print "```"
}
# Notes a step that did not run or failed.
function judge(name, what,   code) {
    code = code_of(name)
    if (code == "") problem(what ": not run, the time was over")
    else if (code == 124 || code == 143) problem(what ": cut off after " took[name] " s")
    else if (code != 0) problem(what ": exit code " code ": " text[name, lines[name]])
    return code
}
function page_facts(   i) {
    print "# Vulkan on " (lines["device"] > 0 ? text["device", 1] : "an unknown device")
    print "\n" day ", " machine ", " cpu ". Kit: " kit
    if (software == "yes") print "\n**A software device.** This page tries the kit, not a GPU."
    judge("device", "the device")
    if (lines["vulkaninfo"] > 0) block("vulkaninfo", 60)
}
# A bar chart of inferd's times by device, on a logarithmic scale.
function plot_speed(   file, i, k, y, width, whats, colors, value, height) {
    split("ref cpu vulkan raced fp16", whats, " ")
    split("#999999 #4477aa #ee6677 #228833 #ccbb44", colors, " ")
    height = 40 + model_count * 86
    file = out "/speed.svg"
    printf "<svg xmlns='http://www.w3.org/2000/svg' width='760' height='%d' font-family='sans-serif' font-size='12'>\n", height > file
    print "<rect width='100%' height='100%' fill='white'/>" > file
    for (k = 1; k <= 5; k++)
        printf "<rect x='%d' y='8' width='12' height='12' fill='%s'/><text x='%d' y='18'>%s</text>\n", 180 + k * 80, colors[k], 196 + k * 80, whats[k] > file
    for (i = 1; i <= model_count; i++) {
        y = 34 + (i - 1) * 86
        printf "<text x='4' y='%d'>%s</text>\n", y + 40, models[i] > file
        for (k = 1; k <= 5; k++) {
            value = speed[models[i], whats[k]]
            if (!(value > 0)) continue
            # 0.01 ms is the left end; a factor of ten is 95 pixels.
            width = 95 * log(value / 0.01) / log(10)
            if (width < 2) width = 2
            printf "<rect x='200' y='%d' width='%.0f' height='13' fill='%s'/><text x='%.0f' y='%d'>%s ms</text>\n", y + (k - 1) * 15, width, colors[k], 206 + width, y + (k - 1) * 15 + 11, ms(value) > file
        }
    }
    print "</svg>" > file
    close(file)
}
function page_speed(   i, m, best) {
    print "\n## Speed\n\nMilliseconds, median, batch 1, fp32. *rule*: shaders by the fixed rule; *raced*: those that won their races on this device. *fp16*: 16-bit storage, forced."
    print "\n| model | ref | cpu | vulkan, rule | vulkan, raced | vulkan, fp16 | ref by raced | cpu by raced | rule by raced |"
    print "|---|---|---|---|---|---|---|---|---|"
    for (i = 1; i <= model_count; i++) {
        m = models[i]
        judge("speed-" m, "speed of " m)
        printf "| %s | %s | %s | %s | %s | %s | %s | %s | %s |\n", m, ms(speed[m, "ref"]),
            ms(speed[m, "cpu"]), ms(speed[m, "vulkan"]), ms(speed[m, "raced"]), ms(speed[m, "fp16"]),
            ratio(speed[m, "ref"], speed[m, "raced"]), ratio(speed[m, "cpu"], speed[m, "raced"]),
            ratio(speed[m, "vulkan"], speed[m, "raced"])
        if (!(speed[m, "vulkan"] > 0)) problem(m ": vulkan has no time")
        if (speed[m, "raced"] > 1.05 * speed[m, "vulkan"] && software != "yes")
            problem(m ": slower with races (" ms(speed[m, "raced"]) " ms) than by the rule (" ms(speed[m, "vulkan"]) " ms)")
        if ((m == "posenet" || m ~ /^mobilenet_v2/) && speed[m, "ref"] < 100 * speed[m, "raced"])
            problem(m ": " ratio(speed[m, "ref"], speed[m, "raced"]) " times as fast as ref, wanted 100")
        if (speed[m, "fp16"] > speed[m, "raced"] && software != "yes")
            problem(m ": slower in 16 bits")
    }
    plot_speed()
    print "\n![times by device](speed.svg)"
}
# Counts which kind of shader wins how often, and prints every line.
function page_shaders(   i, m, k, n, parts, name, line) {
    print "\n## Shaders on the shapes of the models\n\nMicroseconds of one node, of all its dispatches together (GPU timestamps where there are any), shortest of up to six runs, alone. The first shader of a line is the rule's choice, the asterisk marks the fastest, *wrong* a shader whose results differ from sums in double."
    for (i = 1; i <= model_count; i++) {
        m = "shaders-" models[i]
        judge(m, "shaders of " models[i])
        for (k = 1; k <= lines[m]; k++) {
            line = text[m, k]
            n = split(line, parts, " ")
            for (name = 3; name < n; name++) {
                if (parts[name + 1] ~ /\*$/) { sub(/_.*/, "", parts[name]); wins[parts[name]]++ }
                if (parts[name + 1] == "wrong") problem("shader " parts[name] " computes wrongly: " line)
            }
        }
    }
    print "\n| shader | fastest for so many shapes |\n|---|---|"
    for (name in wins) printf "| %s | %d |\n", name, wins[name]
    for (i = 1; i <= model_count; i++) {
        m = "shaders-" models[i]
        if (lines[m] == 0) continue
        print "\n<details><summary>" models[i] "</summary>"
        block(m, 60)
        print "\n</details>"
    }
}
# One line for each test program: how many tests passed.
function page_test(name, what,   i, code, found) {
    code = judge(name, what)
    for (i = lines[name]; i > 0 && found == ""; i--)
        if (text[name, i] ~ /Synthesis|differ$|outputs:/) found = text[name, i]
    for (i = 1; i <= lines[name]; i++)
        if (text[name, i] ~ /Assertion Failed| FAIL$/ && ++failures[name] <= 5)
            problem(what ": " text[name, i] (text[name, i] ~ /FAIL$/ ? "" : " " text[name, i + 1]))
    sub(/^\[====\] /, "", found)
    printf "| %s | %s | %s | %s |\n", what, code == "" ? "not run" : code == 0 ? "ok" : "FAILED", took[name] == "" ? "" : took[name] " s", found
}
function page_correctness(   i) {
    print "\n## Correctness\n\n| what | result | time | |\n|---|---|---|---|"
    page_test("models-fp32", "real models, fp32, beside their references")
    page_test("models-fp16", "real models, 16-bit storage")
    page_test("candidates", "every shader of convolutions, all results beside ref")
    page_test("products", "every shader of products of two tensors, all results beside ref")
    page_test("winograd", "Winograd's algorithm with several batches and in 16 bits, all results beside ref")
    page_test("attention", "attention in one dispatch and node by node, all results beside ref")
    page_test("random", "random graphs beside ref")
    for (i = 1; i <= step_count; i++)
        if (steps[i] ~ /^operators-/) page_test(steps[i], "operators, part " substr(steps[i], 11) " of 24")
    page_test("device-loss", "lost devices, refused memory and pipelines (fault layer)")
    page_test("shader-checks", "checks of shaders: right ones pass, wrong ones are excluded (fault layer)")
}
function page_placement(   i, parts, model, chosen, best, times, n, device) {
    print "\n## Placement\n\nWhat a daemon with all devices chose after its race, and what each device took in fp32 (`inferctl bench --all-backends`)."
    judge("placement", "placement")
    print "\n| model | chosen | | regret |\n|---|---|---|---|"
    for (i = 1; i <= lines["placement"]; i++) {
        n = split(text["placement", i], parts, " ")
        if (text["placement", i] ~ /^--- model /) { model = parts[3]; chosen = ""; delete times }
        else if (model != "" && text["placement", i] ~ / runs on /) {
            # "NAME version N runs on DEVICE (backend ...) ..."
            chosen = text["placement", i]
            sub(/.* runs on /, "", chosen)
            sub(/ .*/, "", chosen)
        } else if (model != "" && n > 8 && parts[1] == model && parts[2] != "device") {
            times[parts[2]] = parts[7]
            if (parts[2] == "ref") {
                best = ""
                for (device in times) if (best == "" || times[device] + 0 < times[best] + 0) best = device
                line = ""
                for (device in times) line = line device " " times[device] " ms; "
                printf "| %s | %s | %s | %s |\n", model, chosen, line, ratio(times[chosen] + 0, times[best] + 0)
                if (times[chosen] > 1.05 * times[best] && software != "yes")
                    problem("placement of " model ": " chosen " takes " ratio(times[chosen] + 0, times[best] + 0) " of the time of " best)
            }
        }
        if (text["placement", i] ~ /FAILED|DIFFERS|wrong/) problem("self-test: " text["placement", i])
    }
}
function page_rest(   i, k, parts, n, ours) {
    print "\n## Time of the host\n\nMicroseconds of a replayed run; *ours* is inferd's code on the calling thread."
    judge("host", "time of the host")
    block("host", 10)
    for (i = 1; i <= lines["host"]; i++)
        if (match(text["host", i], /ours [0-9.]+/)) {
            ours = substr(text["host", i], RSTART + 5, RLENGTH - 5) + 0
            if (ours > 100) problem("host time of a run is " ours " us, wanted at most 100: " text["host", i])
        }
    print "\n## Checks of shaders\n\nEach shader variant that a model uses, compared with ref before its first use."
    judge("model-shaders", "checks of shaders")
    block("model-shaders", 40)
    for (i = 1; i <= lines["model-shaders"]; i++)
        if (match(text["model-shaders", i], /wrong [1-9][0-9]*/)) problem("checks of shaders: " text["model-shaders", i])
    print "\n## Time of a device loss\n\nMilliseconds of the requests of one client, during which the fault layer reports that the GPU is lost; the slowest one moved to another device."
    judge("loss-time", "time of a device loss")
    block("loss-time", 10)
    for (i = 1; i <= lines["loss-time"]; i++) {
        if (text["loss-time", i] !~ / [1-9][0-9]* lost/) problem("time of a device loss: nothing was lost: " text["loss-time", i])
        if (match(text["loss-time", i], /median_ms [0-9.]+/)) k = substr(text["loss-time", i], RSTART + 10, RLENGTH - 10) + 0
        if (match(text["loss-time", i], /max_ms [0-9.]+/) && substr(text["loss-time", i], RSTART + 7, RLENGTH - 7) - k > 50)
            problem("a request took more than 50 ms longer because of a device loss: " text["loss-time", i])
    }
    print "\n## Starts\n\nMilliseconds from before the device is opened to the first answer; start 1 has no cache."
    judge("starts", "starts")
    block("starts", 10)
    print "\n## Inputs of 4 MiB: copied, read in place, moved"
    judge("upload", "upload")
    block("upload", 6)
    if (peer != "") {
        print "\n## " peer
        judge("peer", peer)
        block("peer", 40)
    }
}
END {
    page_facts()
    page_correctness()
    page_speed()
    page_placement()
    page_rest()
    page_shaders()
    print "\n## What is wrong\n"
    if (problem_count == 0) print "Nothing was found."
    for (i = 1; i <= problem_count; i++) print "- **" i "** " problems[i]
}
