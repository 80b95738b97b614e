import pg from 'pg'
import { isOutdated } from './servers/failure.ts'
import { wearOut } from './statement-names.ts'

export type Answered = Pick<pg.QueryResult, 'rows' | 'rowCount'>

/**
 * Runs a statement. Takes the rows out of the driver's result object, which outlives the call. If it kept its rows,
 * nearly everything read would be promoted to the old generation of the heap and collected late.
 */
export const answered = (
  client: pg.ClientBase,
  { text, values, name }: { text: string; values: unknown[]; name?: string },
): Promise<Answered> =>
  new Promise<Answered>((resolve, reject) => {
    const callback = (error: Error | null, result: pg.QueryResult): void => {
      if (error) return void reject(error)
      const { rows, rowCount } = result
      result.rows = []
      resolve({ rows, rowCount })
    }
    client.query(new Statement(text, values, name, callback))
  }).catch((error) => {
    if (isOutdated(error)) wearOut(client)
    // As the driver does, so that the stack leads to the caller and not to its socket.
    Error.captureStackTrace(error)
    throw error
  })

type Columns = { fields: unknown; _parsers: unknown; _prebuiltEmptyResultObject: unknown }
type Callback = (error: Error | null, result: pg.QueryResult) => void

/** What the types of the driver leave out. */
declare class DriverQuery {
  name: string | undefined
  values: unknown[]
  callback: Callback
  _result: Columns
  _accumulateRows: boolean
  constructor(text: string)
  submit(wire: pg.Connection): Error | null
  handleCommandComplete(message: object, wire: pg.Connection): void
}
const { Query, utils } = pg as unknown as {
  Query: typeof DriverQuery
  utils: { prepareValue: pg.BindConfig['valueMapper'] }
}

/**
 * The result columns by connection and statement name. They cannot change: PostgreSQL refuses a prepared statement
 * whose columns changed.
 */
const described = new WeakMap<pg.Connection, Map<string, Columns>>()

const executeAndSync = Buffer.from('45000000090000000000' + '5300000004', 'hex')

/**
 * A statement as the driver sends it, but a prepared one asks only once on each connection for a description of its
 * columns. Parsing the description takes longer than parsing most rows.
 */
class Statement extends Query {
  constructor(text: string, values: unknown[], name: string | undefined, callback: Callback) {
    // The driver would copy an object by the descriptors of its properties.
    super(text)
    this.values = values
    this.name = name
    this.callback = callback
  }

  override submit(wire: pg.Connection): Error | null {
    const columns = this.name === undefined ? undefined : described.get(wire)?.get(this.name)
    if (!columns) return super.submit(wire)
    Object.assign(this._result, columns)
    this._accumulateRows = true
    wire.stream.cork()
    try {
      wire.bind(
        { statement: this.name, values: this.values as string[], valueMapper: utils.prepareValue },
        true,
      )
      wire.stream.write(executeAndSync)
      return null
    } catch (error) {
      return error as Error
    } finally {
      wire.stream.uncork()
    }
  }

  override handleCommandComplete(message: object, wire: pg.Connection): void {
    super.handleCommandComplete(message, wire)
    const known = described.get(wire)
    if (this.name === undefined || known?.has(this.name)) return
    const { fields, _parsers, _prebuiltEmptyResultObject } = this._result
    const columns = { fields, _parsers, _prebuiltEmptyResultObject }
    if (known) known.set(this.name, columns)
    else described.set(wire, new Map([[this.name, columns]]))
  }
}
