import { Console, Effect, Option } from "effect"
import { CliFailure, usage } from "../Failure.ts"
import { call, find, type Schemas } from "../Gateway.ts"
import { Json, jsonLine, plain } from "../Output.ts"
import { isFile, type Members, readJsonc, workflowsIn } from "./Files.ts"
import { resolver } from "./Names.ts"
import { sayWarnings } from "./Warnings.ts"

interface Asked {
  readonly workflow: string
  readonly trigger: Option.Option<string>
  readonly body: Option.Option<string>
  readonly request: Option.Option<string>
  readonly draft: boolean
}

const stepLine = (step: Schemas["WorkflowTest"]["steps"][number]): string => {
  const { error_code, error_message, output_preview, simulated, status, step_id } = step
  const preview = output_preview?.available === true ? ` ${jsonLine(output_preview.preview)}` : ""
  const error = error_code === null ? "" : ` ${error_code}: ${error_message ?? ""}`
  return `${step_id} ${status}${simulated ? " (simulated)" : ""}${error}${preview}`
}

const longest = 2_000
const cut = (text: string): string => (text.length > longest ? `${text.slice(0, longest)}…` : text)

/** Runs a workflow as a dry run, and prints its steps. */
export const test = Effect.fn(function* ({ body, draft, request, trigger, workflow }: Asked) {
  if ([body, request, trigger].filter(Option.isSome).length > 1) {
    yield* usage("only one of --trigger, --body and --request can be given")
  }
  const given = {
    ...(Option.isSome(trigger) ? { trigger: yield* readJsonc(trigger.value) } : {}),
    ...(Option.isSome(body) ? { trigger: { body: yield* readJsonc(body.value) } } : {}),
    ...(Option.isSome(request) ? { request_id: request.value } : {})
  }
  const answer = yield* Effect.gen(function* () {
    if (!isFile(workflow)) {
      const { id } = yield* find("workflow", workflow)
      const asked = { ...given, ...(draft ? { draft } : {}) }
      return yield* call((client, signal) =>
        client.post("/workflows/{id}/test", { params: { path: { id } }, body: asked as never, signal })
      )
    }
    if (draft) return yield* usage("--draft needs the name or id of a workflow")
    const [first, ...others] = yield* workflowsIn(workflow)
    if (first === undefined || others.length > 0) return yield* usage(`${workflow} must have exactly one workflow`)
    const { edges, source_id, steps }: Members = yield* (yield* resolver)(first)
    const asked = { ...given, steps, edges, source_id }
    return yield* call((client, signal) => client.post("/workflows/test", { body: asked as never, signal }))
  })
  if (yield* Json) yield* Console.log(jsonLine(answer))
  else {
    for (const step of answer.steps) yield* Console.log(plain(cut(stepLine(step))))
    yield* sayWarnings(answer.warnings)
    yield* Console.log(plain(`${answer.status} ${answer.outcome ?? ""}`.trimEnd()))
  }
  if (answer.status !== "succeeded") {
    const { error_code, error_message } = answer
    yield* new CliFailure({
      code: "failed",
      message: plain(`${error_code ?? answer.status}: ${error_message ?? ""}`)
    })
  }
})
