/**
 * The promises of document 1 as data: a list of facts, each with the test that proves it. `docs/coverage.md` counts them. The
 * lists are compared with the contract, so every promise has a row, and no row names something that does not exist.
 */

/** A test, by its file and its title as it is written there. */
export interface Proof {
  readonly file: string
  readonly test: string
}

/** Why there is nothing to prove yet. */
export interface Missing {
  readonly missing: string
}

/** Facts that one test proves. */
export type Row = readonly [facts: ReadonlyArray<string>, proof: Proof | Missing]

export interface Section {
  readonly title: string
  /** `POST /sources` is one endpoint; `PUT,POST /sources/{id}/enable` are two. */
  readonly endpoints: ReadonlyArray<Row>
  /**
   * Members of one or more components. `a.*` means all members below `a`. Members that an answer always has need no row: the test
   * that sends every example proves them.
   */
  readonly fields: Readonly<Record<string, ReadonlyArray<Row>>>
  readonly states?: ReadonlyArray<Row>
  readonly limits?: ReadonlyArray<Row>
}

/** The tests of a file, by their titles. */
export const tests =
  (file: string) =>
  (test: string): Proof => ({ file, test })

/** A row of facts that are separated by semicolons or line breaks; the only spaces in endpoints and members are single ones. */
export const row = (facts: string, proof: Proof | Missing): Row => [facts.trim().split(/\s*;\s*|\s*\n\s*/), proof]

/** A row of members, which are separated by spaces. */
export const of = (members: string, proof: Proof | Missing): Row => [members.trim().split(/\s+/), proof]

export const missing = (why: string): Missing => ({ missing: why })

const document = tests("test/contract/openapi/Document.test.ts")
/** Each operation's example is sent. The answer has to match the schema and to have all members that are always present. */
export const shape = document("Every example is accepted and answered with the stated status and shape")
/** A source of each type is created with each setting that its schema requires. */
export const sourceTypes = document("Every source type accepts the settings that its schema requires")
