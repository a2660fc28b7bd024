import { useDocument } from "../../parts/Schema.ts"
import { useSourceTypes } from "./SourceTypes.ts"

/**
 * The API's document and the source types from which the form of a source or a destination is made. Null until they are loaded. `isNeeded`: a page
 * may need it only after a choice.
 */
export const useForms = (isOfSource: boolean, isNeeded = true) => {
  const api = useDocument(isNeeded)
  const types = useSourceTypes(isNeeded && isOfSource)
  const isReady = api.data !== undefined && (!isOfSource || types.data !== undefined)
  return {
    failed: api.isError ? api : types.isError ? types : null,
    made: isReady ? { document: api.data, types: types.data ?? [] } : null
  }
}
