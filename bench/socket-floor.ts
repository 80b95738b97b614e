import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { WebSocketServer } from 'ws'

/** The floor for sockets: `ws` with the options of the product; sends what is posted to every socket, and echoes. */
const sockets = new WebSocketServer({ noServer: true, perMessageDeflate: false })
const server = createServer((request, response) => {
  const chunks: Buffer[] = []
  request.on('data', (chunk: Buffer) => chunks.push(chunk))
  request.on('end', () => {
    const message = Buffer.concat(chunks)
    for (const socket of sockets.clients) socket.send(message, { binary: false })
    response.writeHead(200, { 'content-length': 2 })
    response.end('{}')
  })
})
server.on('upgrade', (request, socket, head) =>
  sockets.handleUpgrade(request, socket, head, (one) =>
    one.on('message', (data) => one.send(data, { binary: false })),
  ),
)
server.listen(0, '127.0.0.1', () => process.send?.((server.address() as AddressInfo).port))
process.once('disconnect', () => process.exit())
