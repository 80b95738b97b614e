import type pg from 'pg'
import { isOutdated } from './servers/failure.ts'
import { Statement } from './statement.ts'
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
