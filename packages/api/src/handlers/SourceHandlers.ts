import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { SourceEntity } from "@tidegate/entities/Source/SourceProtocol"
import { source } from "@tidegate/resources/Source"
import { Sources } from "@tidegate/storage/Sources"
import { Api } from "../contract/Api.ts"
import { handle } from "./Resource.ts"

export const layer = HttpApiBuilder.group(
  Api,
  "sources",
  Effect.fnUntraced(function* (handlers) {
    return yield* handle(handlers, source, yield* Sources, yield* SourceEntity.client)
  })
)
