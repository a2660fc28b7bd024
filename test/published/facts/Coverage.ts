import { bodyOf, operations, type Schema, schemas, successOf } from "../Contract.ts"
import { page, table } from "../Markdown.ts"
import { linkedFrom, membersOf } from "../SchemaText.ts"
import { type Missing, type Proof, type Row, type Section, shape } from "./Facts.ts"
import { sections } from "./Sections.ts"

/** One line of the list: a fact and its proof. */
export interface Fact {
  readonly what: string
  readonly proof: Proof | Missing
}

/** A fact, or a fact without a proof. */
type Told = Fact | { readonly what: string; readonly proof: null }

/** `PUT,POST /a` is `PUT /a` and `POST /a`. */
export const endpointsOf = ({ endpoints }: Section): ReadonlyArray<Fact> =>
  endpoints.flatMap(([facts, proof]) =>
    facts.flatMap((written) => {
      const [methods = "", path = ""] = written.split(" ")
      return methods.split(",").map((method) => ({ what: `${method} ${path}`, proof }))
    })
  )

/** The components of request bodies and answers, without errors. */
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

/** A line for each member that a section has rows for. The proof is null if no row names one and none is implied. */
export const fieldsOf = ({ fields }: Section): ReadonlyArray<Told> =>
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

/** Members that rows name and that do not exist. */
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
  return [proof.file, proof.test]
}

const part = (title: string, facts: ReadonlyArray<Told>, code: boolean): string =>
  facts.length === 0
    ? ""
    : table(
        [title, "Proven in", "By"],
        facts.map(({ proof, what }) => [code ? `\`${what}\`` : what, ...proofText(proof)])
      )

/** The facts of a section by their kinds. */
const kindsOf = (section: Section) => [
  { kind: "Endpoint", facts: endpointsOf(section), code: true },
  { kind: "State or behaviour", facts: said(section.states), code: false },
  { kind: "Limit", facts: said(section.limits), code: false },
  { kind: "Member", facts: fieldsOf(section), code: true }
]

/** All facts of all sections. */
export const allFacts: ReadonlyArray<Told> = sections.flatMap((section) =>
  kindsOf(section).flatMap(({ facts }) => facts)
)

/** Why there is nothing to prove yet; null: there is something. */
const absenceOf = ({ proof }: Told): string | null => (proof !== null && "missing" in proof ? proof.missing : null)
const isAbsent = (fact: Told): boolean => absenceOf(fact) !== null
const absent = Map.groupBy(allFacts.filter(isAbsent), absenceOf)

const number = (facts: ReadonlyArray<Told>): string => (facts.length === 0 ? "" : String(facts.length))

const countsOf = (title: string, kinds: ReadonlyArray<{ readonly facts: ReadonlyArray<Told> }>) => {
  const facts = kinds.flatMap((kind) => kind.facts)
  return [title, ...kinds.map((kind) => number(kind.facts)), number(facts.filter(isAbsent))]
}

const total = countsOf(
  "**All**",
  [0, 1, 2, 3].map((kind) => ({ facts: sections.flatMap((section) => kindsOf(section)[kind]!.facts) }))
)

/** `docs/coverage.md`: the number of facts of each kind, and what is not built. */
export const coveragePage = (): Promise<string> =>
  page([
    "# What is proven",
    `Every endpoint, member, state and limit of the contract is listed in \`test/published/facts\`, with a test that proves it. A suite compares the lists with the contract: an operation or member without a row fails, and so does a row whose test does not exist. This page counts the rows; \`npm test -- test/published\` also writes all rows with their tests to \`${listFile}\`, which git ignores.`,
    "In addition to the test of its row, three suites test every operation. One sends its example and validates the answer against its schema (`Document.test.ts`). One sends invalid input of every kind (`Mutated.test.ts`). One calls it with every kind of credential, also for the data of another team (`Isolation.test.ts`).",
    table(
      ["", "Endpoints", "States and behaviours", "Limits", "Members", "Not built"],
      [...sections.map((section) => countsOf(section.title, kindsOf(section))), total]
    ),
    ...(absent.size === 0 ? [] : ["## What is not built"]),
    ...[...absent].map(([why, facts]) => `${why}: ${facts.map(({ what }) => `\`${what}\``).join(", ")}.`)
  ])

/** The file of the whole list, which is too long to be committed. */
export const listFile = "coverage/facts.md"

/** The whole list: a line for each fact, with its test. */
export const wholeList = (): string =>
  sections
    .flatMap((section) =>
      [`## ${section.title}`].concat(kindsOf(section).map(({ code, facts, kind }) => part(kind, facts, code)))
    )
    .filter((one) => one !== "")
    .join("\n\n")
