import { type CompletionContext, snippetCompletion } from "@codemirror/autocomplete"

/** What code of a transformation can use, by the names that it writes, and what each is. docs/transformations.md describes them. */
const names: Readonly<Record<string, string>> = {
  addHandler: 'addHandler("transform", (request, context) => request): names the function that reshapes a request',
  request: "The request. Change it and return it; what is left out stays as it was",
  "request.body": "The JSON value, or the text if the body is not JSON",
  "request.headers": "By lower-case name; a repeated header is a list. Set one to null to remove it",
  "request.query": "The query as a text",
  "request.parsed_query": "The values of the query by name; change either this or the text",
  "request.path": "The path that is appended to the destination's URL",
  "request.method": "The method, if the destination does not set one",
  context: "What is known about the call",
  "context.connection_id": "The connection, web_…",
  "context.source_id": "The source, src_…",
  "context.destination_id": "The destination, des_…",
  "context.request_id": "The request, req_…",
  "context.team_id": "The team",
  "context.timestamp": "The time of the call, ISO 8601",
  "context.env": "The variables of the transformation",
  process: "process.env has the variables of the transformation",
  "process.env": "The variables of the transformation",
  console: "What is logged is shown below, and is stored with each execution",
  "console.debug": "Logs at the level debug",
  "console.log": "Logs at the level info",
  "console.info": "Logs at the level info",
  "console.warn": "Logs at the level warn",
  "console.error": "Logs at the level error",
  crypto: "Hashes and signatures",
  "crypto.hash": "crypto.hash(algorithm, data)",
  "crypto.hmac": "crypto.hmac(algorithm, key, data)",
  "crypto.timingSafeEqual": "crypto.timingSafeEqual(a, b)",
  "crypto.randomUUID": "crypto.randomUUID()",
  URL: "new URL(text)",
  URLSearchParams: "new URLSearchParams(text)",
  TextEncoder: "new TextEncoder().encode(text)",
  TextDecoder: "new TextDecoder().decode(bytes)",
  atob: "atob(text): base64 to a text",
  btoa: "btoa(text): a text to base64"
}

/** The description of a name. Null: the name is unknown. */
export const hintOf = (name: string): string | null => (Object.hasOwn(names, name) ? names[name]! : null)

const handler = snippetCompletion('addHandler("transform", (request, context) => {\n  ${}\n  return request\n})', {
  label: "addHandler",
  info: names["addHandler"]!,
  boost: 1
})

/** Completes the names of the sandbox, and those of the transformation's own variables. */
export const completions = (variables: () => ReadonlyArray<string>) => (context: CompletionContext) => {
  const typed = context.matchBefore(/[\w$.]+/)
  if (typed === null || (typed.text.length < 1 && !context.explicit)) return null
  const dot = typed.text.lastIndexOf(".")
  const base = dot === -1 ? "" : typed.text.slice(0, dot + 1)
  const own = base === "process.env." || base === "context.env." ? variables() : []
  const known = Object.entries(names).filter(
    ([name]) => name !== "addHandler" && name.startsWith(base) && !name.slice(base.length).includes(".")
  )
  return {
    from: typed.from + base.length,
    validFor: /^[\w$]*$/,
    options: [
      ...(base === "" ? [handler] : []),
      ...own.map((label) => ({ label, info: "A variable of the transformation" })),
      ...known.map(([name, info]) => ({ label: name.slice(base.length), info }))
    ]
  }
}
