import { connectors } from "@tidegate/connectors/Connectors"
import type { Connector } from "@tidegate/connectors/Connector"
import type { Failing } from "../../packages/connectors/test/rows/Row.ts"
import { rowOf } from "../../packages/connectors/test/rows/Rows.ts"
import { page, table } from "./Markdown.ts"

/** The page of what each type of destinations has, how it authenticates, and what it was tried with. */

const code = (text: string): string => `\`${text}\``

const settingsOf = ({ settings }: Connector): string =>
  Object.entries(settings)
    .map(([name, setting]) => code(name) + ("needed" in setting ? "\\*" : ""))
    .join(" ")

/** A failure as a target says it: its status, and its own word where the status is not all. */
const told = ({ body = "", code: error, final, status }: Failing): string => {
  const word = /<Code>(\w+)<\/Code>|"error":"(\w+)"|"code":(\d+)/.exec(body)?.slice(1).find(Boolean)
  return `${status}${word === undefined ? "" : ` ${word}`}: ${error === "BAD_RESPONSE" ? "" : `${error}, `}${final ? "final" : "again"}`
}

const names = {
  credentials: "credentials not taken",
  tooMuch: "too much",
  refused: "refused",
  trouble: "trouble of its own"
} as const

const failuresOf = (type: string): ReadonlyArray<string> => {
  const { failures } = rowOf(type)
  return (Object.keys(names) as ReadonlyArray<keyof typeof names>).map((kind) =>
    failures === null ? "its own suite" : failures[kind].map(told).join("; ") || "none"
  )
}

export const destinationTypesPage = (): Promise<string> =>
  page([
    "# Types of destinations",
    "What each type has, how its deliveries authenticate, and what it was tried with. The page is made of the table of connectors and of the rows by which the suites try each of them (`packages/connectors/test/rows`); `npm test -- test/published -u` writes it.",
    table(
      ["`type`", "What it does", "Settings (\\* has to be written)", "`auth_type`", "Usual pace", "Tried with"],
      connectors.map((row) => [
        code(row.type),
        row.description,
        settingsOf(row),
        row.auths.map(code).join(" "),
        row.pace === undefined ? "none" : `${row.pace.perSecond} a second: ${row.pace.because}`,
        rowOf(row.type).triedWith
      ])
    ),
    "## What answers mean",
    "By what a target says: the attempt's `error_code` where it is not `BAD_RESPONSE`, and whether the retry rule tries `again` or the failure is `final`. Each is tried with each type. What goes wrong on the way (time-outs, cut connections, certificates, private addresses) is the same for all types that call by HTTP.",
    table(
      ["`type`", ...Object.values(names)],
      connectors.map(({ type }) => [code(type)].concat(failuresOf(type)))
    )
  ])
