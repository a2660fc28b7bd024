import { notBuilt } from "../../../packages/api/src/NotBuilt.ts"
import { missing, row, type Section } from "./Facts.ts"

/** The routes whose answer says that they are not built. */
export const absent: Section = {
  title: "Channels",
  endpoints: notBuilt.map((route) => row(route, missing("Answered with 404 and a message that says so"))),
  fields: {}
}
