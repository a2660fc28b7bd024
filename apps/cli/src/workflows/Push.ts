import { Console, Effect } from "effect"
import { CliFailure } from "../Failure.ts"
import { call } from "../Gateway.ts"
import { colored, Json, jsonLine, plain } from "../Output.ts"
import { type Difference, differenceOf } from "./Difference.ts"
import { workflowsIn } from "./Files.ts"
import { resolver } from "./Names.ts"
import { sayWarnings } from "./Warnings.ts"

interface Asked {
  readonly dryRun: boolean
  readonly files: ReadonlyArray<string>
}

/** The stored workflow of that name; null if there is none. */
const storedOf = (name: string) =>
  call(async (client, signal) => {
    const { models } = await client.get("/workflows", { params: { query: { name } }, signal })
    const id = models[0]?.id
    return id === undefined ? null : await client.get("/workflows/{id}", { params: { path: { id } }, signal })
  })

const marks = { added: ["green", "+"], removed: ["red", "-"], changed: ["yellow", "~"] } as const

const line = ({ change, members, what }: Difference, indent = "  ") => {
  const [color, mark] = marks[change]
  const which = members.length === 0 ? "" : ` (${members.join(", ")})`
  return colored(color, `${indent}${mark} ${plain(what)}${plain(which)}`)
}

/** Creates or updates the workflows in files. */
export const push = Effect.fn(function* ({ dryRun, files }: Asked) {
  const isJson = yield* Json
  // All files are read, and all names are found, before anything is written.
  const read = (yield* Effect.forEach(files, workflowsIn)).flat()
  const written = yield* Effect.forEach(read, yield* resolver)
  let differs = false
  for (const workflow of written) {
    const stored = yield* storedOf(workflow.name)
    const changes = differenceOf(stored, workflow)
    const isNew = stored === null
    differs ||= isNew || changes.length > 0
    if (!isJson && (isNew || changes.length > 0)) {
      const change = isNew ? "added" : "changed"
      yield* Console.log(yield* line({ change, what: `workflow ${workflow.name}`, members: [] }, ""))
      for (const one of changes) yield* Console.log(yield* line(one))
    }
    const action = isNew ? "create" : changes.length > 0 ? "update" : "unchanged"
    if (dryRun) {
      if (isJson) yield* Console.log(jsonLine({ name: workflow.name, action, applied: false, changes }))
      continue
    }
    const saved = yield* call((client, signal) => client.put("/workflows", { body: workflow as never, signal }))
    if (isJson) {
      const { id, version, warnings = [] } = saved
      yield* Console.log(jsonLine({ name: workflow.name, action, applied: true, changes, id, version, warnings }))
      continue
    }
    yield* sayWarnings(saved.warnings)
    const isSame = stored?.version === saved.version
    yield* Console.log(plain(`${saved.id} ${saved.name}: version ${saved.version}${isSame ? ", as it was" : ""}`))
  }
  if (dryRun && differs) {
    yield* new CliFailure({ code: "differs", message: "the gateway differs from the files" })
  }
})
