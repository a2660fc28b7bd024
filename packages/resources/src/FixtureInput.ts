import { Schema } from "effect"
import * as Characters from "@tidegate/model/Characters"
import { nameUpTo, Storable, text } from "./Members.ts"
import { bodyOf } from "./Resource.ts"
import { ids } from "./ExampleIds.ts"

/** The bodies of fixtures. */

const Name = nameUpTo(120).annotate({ description: "For display" })

const Description = Schema.NullOr(Storable(500)).annotate({
  description: "What the request is an example of"
})

const Id = text.check(Characters.upTo(100))

export const fixtureBody = bodyOf(
  Schema.Struct({
    request_id: Id.annotate({ description: "The request to copy" }),
    name: Name,
    description: Schema.optionalKey(Description)
  }).annotate({ identifier: "FixtureWrite" })
)

export const fixturePatch = bodyOf(
  Schema.Struct({ name: Schema.optionalKey(Name), description: Schema.optionalKey(Description) }).annotate({
    identifier: "FixturePatch"
  })
)

export const fixtureReplay = bodyOf(
  Schema.Struct({ connection_id: Id.annotate({ description: "One of the fixture's targets" }) }).annotate({
    identifier: "FixtureReplay"
  })
)

export const example = {
  body: { request_id: ids.request, name: "order without lines", description: "answers 422" },
  patch: { description: "answers 400" },
  replay: { connection_id: ids.connection }
} as const
