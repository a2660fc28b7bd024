import { describe, expect, it } from "@effect/vitest"
import { globSync, readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { jsonUses } from "./jsonUses.ts"

/**
 * What strangers wrote is parsed by `parseJson` alone, which looks first what that would cost. This suite reads all sources
 * of the gateway and fails on any other way to parse JSON; one that is of our own writing is listed with its reason.
 */
const ours: ReadonlyArray<readonly [file: RegExp, uses: ReadonlyArray<string>, reason: string]> = [
  [/^packages\/json\/src\/JsonText\.ts$/, ["JSON.parse", "readJson", "readJsonbBytes"], "the guarded parse itself"],
  [
    /^packages\/json\/src\/JsonSchema\.ts$/,
    ["readJson", "fromJsonText"],
    "the schema of what we wrote, whose uses are listed"
  ],
  [
    /^packages\/storage\/src\/JsonColumns\.ts$/,
    ["json", "readJson", "readJsonbBytes"],
    "columns that we wrote: what stands in them was bounded when it came"
  ],
  [
    /^packages\/sandbox\/src\/child\/(Envelope|Host|Settle|main)\.ts$/,
    ["JSON.parse"],
    "in a process of its own, watched for time and memory: what it holds up is the call itself"
  ],
  [/^packages\/json\/src\/ExactNumber\.ts$/, ["JSON"], "it writes: `rawJSON`, which TypeScript does not know"],
  [/^packages\/json\/src\/LargeJson\.ts$/, ["readJson"], "parts of a text, bounded by their length"],
  [/^packages\/sandbox\/src\/child\/Guest\.ts$/, ["JSON"], "inside an isolate, which is stopped by force"],
  [
    /^packages\/storage\/src\/(delivery\/DeliverySettings|secrets\/SealedColumn)\.ts$/,
    ["fromJsonText"],
    "settings that the control API took, bounded there, and that we sealed"
  ],
  [
    /^packages\/(model\/src\/Message|storage\/src\/reads\/Payload)\.ts$/,
    ["JSON.parse"],
    "headers as we stored them: the HTTP server bounds those of a request, the sandbox those of a transformation"
  ],
  [/^packages\/storage\/src\/reads\/ExecutionRow\.ts$/, ["fromJsonString"], "log lines as we stored them, at most 100"],
  [
    /^packages\/entities\/src\/Protocol\.ts$/,
    ["fromJsonText"],
    "an input that the control API took, bounded there, from another process of the cluster"
  ],
  [
    /^packages\/(entities\/src\/Workflow\/(Carried|Plans|RunRecord)|workflows\/src\/(Preview|Progress))\.ts$/,
    ["JSON.parse", "readJson"],
    "the state of a run as we stored it: what a step gave is bounded when it gives it"
  ],
  [
    /^packages\/entities\/src\/Formatting\/(Workshop|worker)\.ts$/,
    ["readJson"],
    "what a thread of this process is sent and answers: values that were read behind the guard, and what the formatter made of them"
  ],
  [
    /^packages\/(workflows\/src\/RunReport|storage\/src\/reads\/RunDetail|entities\/src\/Workflow\/DryRunReport)\.ts$/,
    ["JSON.parse"],
    "what a commit changed of a run, and previews as we made them: bounded there, and read a few at a time"
  ],
  [
    /^packages\/storage\/src\/reads\/(?:Cursor|EventFeed)\.ts$/,
    ["fromJsonString"],
    "a cursor, as long as a URL may be"
  ],
  [/^packages\/api\/src\/actions\/ChoicesCursor\.ts$/, ["fromJsonString"], "a cursor of at most 4,096 characters"],
  [
    /^packages\/storage\/src\/workflows\/Actions\.ts$/,
    ["readJson"],
    "settings that the control API took, as we are about to store them"
  ],
  [/^packages\/actions\/src\/Provider\.ts$/, ["JSON.parse"], "schemas of our own declarations"],
  [/^packages\/api\/src\/dashboard\/SealedCookies\.ts$/, ["JSON.parse"], "a cookie as we have encrypted it"],
  [/^apps\/dashboard\/src\//, ["JSON", "JSON.parse", "json"], "in the browsers of its users, not in the gateway"],
  [/^packages\/api\/src\/PublishedDocument\.ts$/, ["JSON.parse"], "a file of this project"],
  [
    /^packages\/storage\/src\/channels\/SourceChannel\.ts$/,
    ["readJson"],
    "settings that the control API took, as we are about to store them"
  ],
  [
    /^packages\/entities\/src\/dispatch\/Packed\.ts$/,
    ["JSON.parse"],
    "the head of a message of our own, from another process of the cluster"
  ],
  [
    /^packages\/storage\/src\/secrets\/PresentedColumn\.ts$/,
    ["fromJsonString"],
    "credentials as we sealed them: the HTTP server bounds the headers and the query that they came in"
  ],
  [
    /^packages\/client\/src\/(Client|Socket)\.ts$/,
    ["JSON"],
    "runs at the gateway's users, and reads what the gateway says"
  ],
  [
    /^apps\/cli\/src\/(Credentials|Gateway)\.ts$/,
    ["readJson", "fromJsonString"],
    "the command line's own file, bounded, and what the gateway says"
  ],
  [
    /^apps\/cli\/src\/workflows\/Files\.ts$/,
    ["JSON.parse", "readJson"],
    "files of the user of the command line, a program of its own"
  ],
  [
    /^packages\/storage\/src\/workflows\/WorkflowValues\.ts$/,
    ["readJson"],
    "the result of a step as we stored it: two flags and a number"
  ],
  [
    /^packages\/entities\/src\/Workflow\/Arrivals\.ts$/,
    ["readJson"],
    "the filter of a step that waits, as we stored it: at most 8,192 characters"
  ],
  [/^packages\/embedded-postgres\/src\/Binaries\.ts$/, ["fromJsonString"], "a file of an installed package"]
]

const root = fileURLToPath(new URL("../../..", import.meta.url))
const sources = globSync(["packages/*/src/**/*.{ts,tsx,mts}", "apps/*/src/**/*.{ts,tsx,mts}"], {
  cwd: root,
  exclude: ["**/node_modules/**"]
})
const uses = sources.flatMap((file) =>
  jsonUses(readFileSync(`${root}/${file}`, "utf8"), file).map(({ line, name }) => ({ file, line, name }))
)

describe("JSON from outside", () => {
  it("JSON from outside is parsed only by the guarded parser", () => {
    expect(sources.length).toBeGreaterThan(100)
    const others = uses
      .filter(({ file, name }) => !ours.some(([files, names]) => files.test(file) && names.includes(name)))
      .map(({ file, line, name }) => `${file}:${line} uses ${name}`)
    expect(others).toEqual([])
  })

  it("List of JSON exceptions has no exception that nobody needs", () => {
    const idle = ours.filter(([files]) => !uses.some(({ file }) => files.test(file))).map(([, , reason]) => reason)
    expect(idle).toEqual([])
  })
})

describe("Search for JSON uses", () => {
  it.each([
    ["JSON.parse(text)", "JSON.parse"],
    ["const read = JSON.parse", "JSON.parse"],
    ['JSON["parse"](text)', "JSON"],
    ["const { parse } = JSON", "JSON"],
    ["use(JSON)", "JSON"],
    ["globalThis.JSON.parse(text)", "JSON.parse"],
    ["Schema.decodeUnknownEffect(Schema.fromJsonString(A))", "fromJsonString"],
    ["Schema.UnknownFromJsonString", "UnknownFromJsonString"],
    ["HttpIncomingMessage.schemaBodyJson(A)", "schemaBodyJson"],
    ["await response.json()", "json"],
    ["readJson(text)", "readJson"],
    ["yield* request.json", "json"]
  ])("Search for JSON uses finds %s", (source, name) =>
    expect(jsonUses(`async () => { ${source.replace("yield* ", "")} }`).map((use) => use.name)).toEqual([name])
  )

  it.each([
    "JSON.stringify(value)",
    "// JSON.parse(text)",
    'const text = "JSON.parse(text)"',
    "parseJson(bytes)",
    "const parse = (text: string) => text",
    "type A = typeof JSON.parse"
  ])("Search for JSON uses ignores %s", (source) => expect(jsonUses(source)).toEqual([]))
})
