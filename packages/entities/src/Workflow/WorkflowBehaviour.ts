import { Effect } from "effect"
import { workflow } from "@tidegate/resources/Workflow"
import { Workflows } from "@tidegate/storage/Workflows"
import { actorOf } from "../Actor.ts"
import { WorkflowEntity } from "./WorkflowProtocol.ts"

/**
 * The workflow's actor, which alone writes its row; but that a source, when it is deleted, takes itself out of the rows of its workflows. Its
 * commands take turns: of many changes of one version, the first is made and the others are told of it.
 */
export const layer = WorkflowEntity.toLayer(
  Effect.gen(function* () {
    return WorkflowEntity.of(yield* actorOf(workflow, yield* Workflows))
  })
)
