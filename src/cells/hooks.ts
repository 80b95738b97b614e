import type { App } from '../core/app.ts'
import { refusal } from '../errors.ts'
import { type CellData, CellDataIssues, type CellHooks } from '../registry/hooks.ts'
import { badText, issue } from '../wire/issues.ts'
import { parseJson } from '../wire/parse-json.ts'
import { Data } from './data.ts'

/** Runs the data hook. Its result must pass the rules for data again and is stored as JSON carries it. */
export async function validated({ hooks }: App, kind: string | null, data: CellData): Promise<CellData> {
  if (!hooks.validateData) return data
  try {
    const result = toData(await hooks.validateData(kind, structuredClone(data)))
    if (result) return result
    throw new CellDataIssues([{ path: [], message: 'The data hook returned data that cannot be stored.' }])
  } catch (error) {
    if (!(error instanceof CellDataIssues)) throw hookFailed('validateData', error)
    throw refusal('cell_data_invalid', {
      issues: error.issues.slice(0, 20).map(({ path, message }) => issue(path, 'custom', message)),
    })
  }
}

/** Calls the create hook with a copy of the data, so that changes it makes there are not stored unchecked. */
export async function mayCreate(
  { hooks }: App,
  caller: Parameters<NonNullable<CellHooks['authorizeCreate']>>[0],
  wanted: Parameters<NonNullable<CellHooks['authorizeCreate']>>[1],
): Promise<boolean> {
  if (!hooks.authorizeCreate) return true
  try {
    return (await hooks.authorizeCreate(caller, { ...wanted, data: structuredClone(wanted.data) })) === true
  } catch (error) {
    throw hookFailed('authorizeCreate', error)
  }
}

/** Callers never see what a hook throws, whether it is a refusal or a database error. */
const hookFailed = (hook: keyof CellHooks, cause: unknown): Error =>
  new Error(`The hook ${hook} failed.`, { cause })

/** The data as JSON carries it; undefined if JSON cannot, or if it breaks a rule for data. */
function toData(result: unknown): CellData | undefined {
  try {
    const text = JSON.stringify(result, (_key, value: unknown) => {
      if (typeof value === 'number' && !Number.isFinite(value)) throw new TypeError('not a finite number')
      return value
    })
    const { data } = Data.safeParse(parseJson(text))
    return data && !Object.hasOwn(data, 'kind') && badText(data) === undefined ? data : undefined
  } catch {
    return undefined
  }
}
