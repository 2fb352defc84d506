// A tool server in JavaScript, generated from the protocol's file: two tools, progress, cancel.
// node server.cjs PROTO_FOLDER [HOST:PORT]; prints where it listens. Never reaches the network.
"use strict";

const grpc = require("@grpc/grpc-js");
const loader = require("@grpc/proto-loader");

const [folder, address = "127.0.0.1:0"] = process.argv.slice(2);
const file = "thoughtgate_proto/tools/v1/tool_server.proto";
const options = { keepCase: true, longs: String, includeDirs: [folder] };
const { ToolServer } = grpc.loadPackageDefinition(loader.loadSync(file, options)).thoughtgate.tools.v1;

const json = (value) => Buffer.from(JSON.stringify(value));
const object = (properties) => ({
  type: "object",
  properties,
  required: Object.keys(properties),
  additionalProperties: false,
});

const REVISION = "1";
const TOOLS = [
  {
    name: "slug",
    description: "Turn a title into the last part of an address.",
    input_schema_json: json(object({ title: { type: "string", minLength: 1 } })),
    output_schema_json: json(object({ slug: { type: "string" } })),
    hints: { read_only: true },
  },
  {
    name: "count_down",
    description: "Count down, ten steps a second, and say so at each step.",
    input_schema_json: json(object({ from: { type: "integer", minimum: 0, maximum: 1000 } })),
    output_schema_json: json(object({ steps: { type: "integer" } })),
    hints: { read_only: true },
  },
];

// One event after another; a call that is over hears nothing more, and its timer ends.
const RUN = {
  slug(call, { title }) {
    const parts = title.toLowerCase().match(/[\p{L}\p{N}]+/gu);
    if (!parts) return answer(call, { text: "the title holds no letter", is_error: true });
    answer(call, { structured: { slug: parts.join("-") } });
  },
  count_down(call, { from }) {
    let done = 0;
    const timer = setInterval(() => {
      if (done === from) {
        clearInterval(timer);
        return answer(call, { structured: { steps: done } });
      }
      done += 1;
      if (call.request.want_progress) call.write({ progress: { progress: done, total: from } });
    }, 100);
    call.on("cancelled", () => {
      clearInterval(timer);
      console.log("cancelled");
    });
  },
};

function answer(call, { text, structured, is_error = false }) {
  const content = [{ type: "text", text: text ?? JSON.stringify(structured) }];
  const result = { content_json: json(content), is_error };
  if (structured) result.structured_content_json = json(structured);
  call.write({ result });
  call.end();
}

function refuse(call, code, details) {
  call.emit("error", { code, details });
}

const service = {
  GetServerInfo: (call, done) => done(null, { name: "node", version: "1.0" }),
  ListTools: (call, done) => done(null, { tools: TOOLS, revision: REVISION }),
  WatchTools: (call) => {
    // these tools never change: say the revision once, and leave the stream open
    if (call.request.known_revision !== REVISION) call.write({ revision: REVISION });
  },
  CallTool: (call) => {
    const { name, arguments_json: given, tools_revision: revision } = call.request;
    if (!Object.hasOwn(RUN, name)) return refuse(call, grpc.status.NOT_FOUND, "unknown tool");
    if (revision && revision !== REVISION) {
      return refuse(call, grpc.status.FAILED_PRECONDITION, "list the tools again");
    }
    try {
      RUN[name](call, given.length ? JSON.parse(given) : {});
    } catch {
      refuse(call, grpc.status.INVALID_ARGUMENT, "the arguments cannot be used");
    }
  },
};

const server = new grpc.Server();
server.addService(ToolServer.service, service);
server.bindAsync(address, grpc.ServerCredentials.createInsecure(), (error, port) => {
  if (error) throw error;
  console.log(port);
});
process.on("SIGTERM", () => server.forceShutdown());
