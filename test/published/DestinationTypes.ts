import { connectors } from "@tidegate/connectors/Connectors"
import type { Connector } from "@tidegate/connectors/Connector"
import type { Failing } from "../../packages/connectors/test/rows/Row.ts"
import { rowOf } from "../../packages/connectors/test/rows/Rows.ts"
import { page, table } from "./Markdown.ts"

/** The page that lists for each destination type its settings, authentication, and tests. */

const code = (text: string): string => `\`${text}\``

const settingsOf = ({ settings }: Connector): string =>
  Object.entries(settings)
    .map(([name, setting]) => code(name) + ("needed" in setting ? "\\*" : ""))
    .join(" ")

/** A target's failure: its status, and the target's own error code if the status is not enough. */
const textOf = ({ body = "", code: error, final, status }: Failing): string => {
  const word = /<Code>(\w+)<\/Code>|"error":"(\w+)"|"code":(\d+)/.exec(body)?.slice(1).find(Boolean)
  return `${status}${word === undefined ? "" : ` ${word}`}: ${error === "BAD_RESPONSE" ? "" : `${error}, `}${final ? "final" : "again"}`
}

const names = {
  credentials: "credentials rejected",
  tooMuch: "rate limit exceeded",
  refused: "refused",
  trouble: "target's own errors"
} as const

const failuresOf = (type: string): ReadonlyArray<string> => {
  const { failures } = rowOf(type)
  return (Object.keys(names) as ReadonlyArray<keyof typeof names>).map((kind) =>
    failures === null ? "its own suite" : failures[kind].map(textOf).join("; ") || "none"
  )
}

export const destinationTypesPage = (): Promise<string> =>
  page([
    "# Destination types",
    "The settings of each type, the authentication of its deliveries, and the services with which it was tested. This page is generated from the table of connectors and from the rows with which the suites test each connector (`packages/connectors/test/rows`); `npm test -- test/published -u` writes it.",
    table(
      [
        "`type`",
        "Name",
        "What it does",
        "Settings (\\*: required)",
        "`auth_type`",
        "Default rate limit",
        "Tested with"
      ],
      connectors.map((row) => [
        code(row.type),
        row.name,
        row.description,
        settingsOf(row),
        row.auths.map(code).join(" "),
        row.pace === undefined ? "none" : `${row.pace.perSecond} per second: ${row.pace.because}`,
        rowOf(row.type).triedWith
      ])
    ),
    "## What answers mean",
    "For each answer of a target: the attempt's `error_code`, unless it is `BAD_RESPONSE`, and whether the retry rule tries `again` or the failure is `final`. Every case is tested with every type. Failures of the connection (time-outs, cut connections, certificates, private addresses) are the same for all types that use HTTP.",
    table(
      ["`type`", ...Object.values(names)],
      connectors.map(({ type }) => [code(type)].concat(failuresOf(type)))
    )
  ])
