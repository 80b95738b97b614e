import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

/** The floor for streams: a bare `node:http` server that writes what is posted to it to every listener. */
const listeners = new Set<ServerResponse>()
const server = createServer((request, response) => {
  if (request.method === 'GET') {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.write(': connected\n\n')
    listeners.add(response)
    response.on('close', () => listeners.delete(response))
    return
  }
  const chunks: Buffer[] = []
  request.on('data', (chunk: Buffer) => chunks.push(chunk))
  request.on('end', () => {
    const block = Buffer.concat(chunks)
    for (const listener of listeners) listener.write(block)
    response.writeHead(200, { 'content-length': 2 })
    response.end('{}')
  })
})
server.listen(0, '127.0.0.1', () => process.send?.((server.address() as AddressInfo).port))
process.once('disconnect', () => process.exit())
