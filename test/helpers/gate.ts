import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'

export type Gate = {
  /** Resolves when a mutation has reached its hook and waits there. */
  entered: Promise<void>
  /** Lets this mutation and all later ones continue. */
  open(): void
  close(): void
}

/** A config file whose data hook waits for this process: mutations with `data.gate` stop inside their transaction. */
export async function gatedConfig(cwd: string, extra = ''): Promise<Gate> {
  const waiting: ServerResponse[] = []
  let isOpen = false
  const server = createServer((_request, response) => {
    if (isOpen) response.end()
    else waiting.push(response)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  await writeFile(
    join(cwd, 'cellkeep.config.mjs'),
    `export default {
      hooks: {
        async validateData(kind, data) {
          if (data.gate) await fetch('http://127.0.0.1:${port}')
          return data
        },
      },
    }
    ${extra}`,
  )
  return {
    entered: once(server, 'request').then(() => undefined),
    open: () => {
      isOpen = true
      for (const response of waiting.splice(0)) response.end()
    },
    close: () => {
      server.close()
      server.closeAllConnections()
    },
  }
}
