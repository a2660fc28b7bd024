import { Effect } from "effect"
import { schemaVersion, type SchemaVersion } from "@tidegate/storage/Migrations"
import { type DatabaseCheck, type Finding, fine, wrong } from "../Check.ts"

export const judgeSchema = ({ present, wanted }: SchemaVersion): Finding => {
  if (present === 0) {
    return wrong(
      "the database has no schema of the gateway",
      "check DATABASE_URL; the first start of a gateway creates the schema"
    )
  }
  if (present < wanted) {
    return wrong(
      `the schema is at migration ${present}, and this version needs ${wanted}`,
      "start a gateway of this version: it migrates the database, while those of the version before go on working"
    )
  }
  if (present > wanted) {
    return wrong(
      `the schema is at migration ${present}, made by a newer version; this one knows ${wanted}`,
      "run the command and the gateway of the newer version"
    )
  }
  return fine(`the schema is that of this version (migration ${present})`)
}

export const schema: DatabaseCheck = {
  of: "database",
  name: "schema",
  about: "whether the schema is that of this version",
  look: Effect.map(schemaVersion, judgeSchema)
}
