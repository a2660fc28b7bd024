import { bodyOf, operations, type Schema, schemas, successOf } from "../Contract.ts"
import { page, table } from "../Markdown.ts"
import { linkedFrom, membersOf } from "../SchemaText.ts"
import { type Missing, type Proof, type Row, type Section, shape } from "./Facts.ts"
import { sections } from "./Sections.ts"

/** One line of the page: a fact and its proof. */
export interface Fact {
  readonly what: string
  readonly proof: Proof | Missing
}

/** `PUT,POST /a` is `PUT /a` and `POST /a`. */
export const endpointsOf = ({ endpoints }: Section): ReadonlyArray<Fact> =>
  endpoints.flatMap(([facts, proof]) =>
    facts.flatMap((written) => {
      const [methods = "", path = ""] = written.split(" ")
      return methods.split(",").map((method) => ({ what: `${method} ${path}`, proof }))
    })
  )

/** The components of what is sent and of what is answered, errors apart. */
const gathered = (start: ReadonlyArray<Schema | undefined>): ReadonlySet<string> => {
  const found = new Set<string>()
  const follow = (schema: Schema): void => {
    for (const name of linkedFrom(schema)) {
      if (found.has(name)) continue
      found.add(name)
      follow(schemas[name]!)
    }
  }
  for (const schema of start) follow(schema ?? {})
  return found
}
const sent = gathered(operations.map((operation) => bodyOf(operation)?.schema))
const answered = gathered(operations.map((operation) => successOf(operation).media?.schema))

const plain = (name: string): string => name

/** The components that have members, with their names. */
export const components: ReadonlyMap<string, ReadonlyArray<string>> = new Map(
  [...sent.union(answered)].flatMap((name) => {
    const members = membersOf(schemas[name]!, plain)
    return members.length === 0 ? [] : [[name, members.map((member) => member.name)] as const]
  })
)

const covers = (pattern: string, member: string): boolean =>
  pattern === "*" || (pattern.endsWith(".*") ? member.startsWith(pattern.slice(0, -1)) : pattern === member)

/** A line for each member that a section has rows of; without a proof where none is said and none goes without saying. */
export const fieldsOf = ({ fields }: Section): ReadonlyArray<Fact | { readonly what: string; readonly proof: null }> =>
  Object.entries(fields).flatMap(([names, rows]) =>
    names.split(" ").flatMap((name) => {
      const schema = schemas[name]
      if (schema === undefined) return [{ what: `${name}, which is no component`, proof: null }]
      return membersOf(schema, plain).map((member) => {
        const named = rows.find(([patterns]) => patterns.includes(member.name))
        const said = named ?? rows.find(([patterns]) => patterns.some((pattern) => covers(pattern, member.name)))
        const goesWithout = answered.has(name) && !sent.has(name) && member.needed
        return { what: `${name}.${member.name}`, proof: said?.[1] ?? (goesWithout ? shape : null) }
      })
    })
  )

/** What rows say of members that there are not. */
export const idleFields = ({ fields }: Section): ReadonlyArray<string> =>
  Object.entries(fields).flatMap(([names, rows]) => {
    const members = names.split(" ").flatMap((name) => components.get(name) ?? [])
    return rows.flatMap(([patterns]) =>
      patterns.filter((pattern) => !members.some((member) => covers(pattern, member))).map((one) => `${names}: ${one}`)
    )
  })

export const said = (rows: ReadonlyArray<Row> = []): ReadonlyArray<Fact> =>
  rows.flatMap(([facts, proof]) => facts.map((what) => ({ what, proof })))

const proofText = (proof: Proof | Missing | null): readonly [string, string] => {
  if (proof === null) return ["**nothing**", ""]
  if ("missing" in proof) return ["not built", proof.missing]
  return [`[${proof.file.split("/").at(-1)!}](../${proof.file})`, proof.test]
}

const part = (title: string, facts: ReadonlyArray<Fact | { what: string; proof: null }>, code: boolean): string =>
  facts.length === 0
    ? ""
    : table(
        [title, "Proven in", "By"],
        facts.map(({ proof, what }) => [code ? `\`${what}\`` : what, ...proofText(proof)])
      )

const sectionText = (section: Section): ReadonlyArray<string> => [
  `## ${section.title}`,
  part("Endpoint", endpointsOf(section), true),
  part("State or behaviour", said(section.states), false),
  part("Limit", said(section.limits), false),
  part("Member", fieldsOf(section), true)
]

/** Every fact of the sections. */
export const allFacts = sections.flatMap((section) => [
  ...endpointsOf(section),
  ...fieldsOf(section),
  ...said(section.states),
  ...said(section.limits)
])

export const coveragePage = (): Promise<string> => {
  const counted = (facts: ReadonlyArray<unknown>) => String(facts.length)
  const kinds = [
    ["Endpoints", sections.flatMap(endpointsOf)],
    ["States and behaviours", sections.flatMap(({ states }) => said(states))],
    ["Limits", sections.flatMap(({ limits }) => said(limits))],
    ["Members", sections.flatMap(fieldsOf)]
  ] as const
  return page([
    "# What is proven",
    "Every endpoint, member, state and limit of the gateway part of the contract, with a test that proves it. The page is made of the lists in `test/published/facts`, and `npm test -- test/published -u` writes it. A suite holds it to the contract: an operation or member without a row fails, and so does a row whose test there is not.",
    "Beside the test of its row, each operation has its example sent and its answer judged by its schema (`Document.test.ts`), is sent what is wrong in every way (`Mutated.test.ts`), and is called with every kind of credential, for another team's things too (`Isolation.test.ts`).",
    table(
      ["", "All", "Proven", "Not built"],
      kinds.map(([kind, facts]) => {
        const absent = facts.filter(({ proof }) => proof !== null && "missing" in proof)
        return [kind, counted(facts), String(facts.length - absent.length), counted(absent)]
      })
    ),
    ...sections.flatMap(sectionText)
  ])
}
