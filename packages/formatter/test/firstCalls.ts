import { Result } from "effect"
import { phones } from "../src/engine/Libraries.ts"
import { compile, inParts } from "../src/Formatter.ts"
import { context } from "./Run.ts"

/** A program: the first calls of its process. It prints as JSON in how many parts each was done, and whether it succeeded. */

const partsOf = (operation: string, inputs: object): { readonly parts: number; readonly isSuccess: boolean } => {
  const work = inParts(Result.getOrThrow(compile({ operation })), { ...inputs }, context)
  let parts = 1
  for (;;) {
    const part = work.next()
    if (part.done === true) return { parts, isSuccess: Result.isSuccess(part.value) }
    parts++
  }
}

const isCompiled = Result.isSuccess(compile({ operation: "number.phone", options: { region: "CH" } }))
const isLoaded = phones.isLoaded()
const input = "8005551212"
const phone = [partsOf("number.phone", { input }), partsOf("number.phone", { input })]
const markdown = [partsOf("text.html_to_markdown", { input: "<b>a</b>" }), partsOf("text.html_to_markdown", { input })]
process.stdout.write(JSON.stringify({ isCompiled, isLoaded, phone, markdown }))
