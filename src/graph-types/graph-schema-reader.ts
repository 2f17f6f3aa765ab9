import type ts from "typescript-5";
import type { JsonObject } from "../model/json.ts";
import type { TypeSchemas } from "../ports/graph-type-schemas.ts";
import { SchemaWriter, type Compiler } from "./schema-writer.ts";

/** The deepest level of nested subgraphs whose schemas are read. */
const MAX_LEVELS = 32;
/**
 * The largest number of steps from an exported value to its compiled graph. One step leads, for example, from a function to
 * its return value.
 */
const MAX_STEPS = 4;
/** The largest size of a graph's schemas, as characters of JSON. */
const MAX_LENGTH = 4 * 1024 * 1024;

/** A node with a subgraph: the expression of the subgraph, and its type. */
interface Subgraph {
  readonly node: string;
  readonly graph: ts.Expression;
  readonly type: ts.Type;
}

/** Finds the graphs of a file, and the schemas of their types. */
export class GraphSchemaReader {
  readonly #ts: Compiler;
  readonly #program: ts.Program;
  readonly #checker: ts.TypeChecker;

  constructor(compiler: Compiler, program: ts.Program) {
    this.#ts = compiler;
    this.#program = program;
    this.#checker = program.getTypeChecker();
  }

  /**
   * The schemas of an exported graph (at the empty path) and of its subgraphs. Null if there is no such
   * export, or if its type is not that of a graph.
   * @throws RangeError when the schemas are too large
   */
  read(file: string, name: string): { readonly [path: string]: TypeSchemas } | null {
    const source = this.#program.getSourceFile(file);
    const module = source && this.#checker.getSymbolAtLocation(source);
    const found = module && this.#checker.getExportsOfModule(module).find((one) => one.name === name);
    if (source === undefined || found === undefined) return null;
    const symbol = this.#resolved(found);
    const type = this.#graphType(this.#checker.getTypeOfSymbolAtLocation(symbol, source));
    if (type === undefined) return null;
    const schemas: Record<string, TypeSchemas> = { "": this.#schemasOf(type) };
    const declared = symbol.valueDeclaration;
    if (declared !== undefined) this.#addSubgraphs(schemas, "", declared, 0);
    if (JSON.stringify(schemas).length > MAX_LENGTH) throw new RangeError("its schemas are too large");
    return schemas;
  }

  #addSubgraphs(schemas: Record<string, TypeSchemas>, above: string, at: ts.Node, level: number): void {
    if (level >= MAX_LEVELS) return;
    for (const { node, graph, type } of this.#subgraphs(at)) {
      const path = above === "" ? node : `${above}|${node}`;
      if (Object.hasOwn(schemas, path)) continue;
      schemas[path] = this.#schemasOf(type);
      this.#addSubgraphs(schemas, path, graph, level + 1);
    }
  }

  // --- types of graphs ---

  /**
   * The type of the compiled graph that a value of this type is or returns; undefined if there is none. The value may
   * be a graph, a builder, an agent or a function.
   */
  #graphType(type: ts.Type, steps = 0): ts.Type | undefined {
    if (steps > MAX_STEPS) return undefined;
    if (type.getProperty("~InputType") !== undefined) return type;
    const next =
      this.#returned(type) ?? this.#returned(this.#member(type, "compile")) ?? this.#member(type, "graph");
    return next === undefined ? undefined : this.#graphType(next, steps + 1);
  }

  #returned(type: ts.Type | undefined): ts.Type | undefined {
    const result = type?.getCallSignatures().at(-1)?.getReturnType();
    return result && (this.#checker.getAwaitedType(result) ?? result);
  }

  #member(type: ts.Type | undefined, name: string): ts.Type | undefined {
    const symbol = type?.getProperty(name);
    return symbol && this.#checker.getTypeOfSymbol(symbol);
  }

  #schemasOf(graph: ts.Type): TypeSchemas {
    const input = this.#member(graph, "~InputType");
    const output = this.#member(graph, "~OutputType");
    const update = this.#member(graph, "~RunInput") ?? this.#member(graph, "RunInput") ?? input;
    const setup = this.#member(this.#member(graph, "builder"), "_configSchema");
    return {
      input: this.#described(input),
      // The output of an `entrypoint` is the promise that its function returns.
      output: this.#described(output && (this.#checker.getAwaitedType(output) ?? output)),
      state: this.#described(update),
      config: this.#channels(setup && this.#checker.getNonNullableType(setup)),
    };
  }

  #described(type: ts.Type | undefined): JsonObject | null {
    if (type === undefined || this.#saysNothing(type)) return null;
    const writer = new SchemaWriter(this.#ts, this.#program);
    const isObject = (type.flags & (this.#ts.TypeFlags.Object | this.#ts.TypeFlags.Intersection)) !== 0;
    if (!isObject || type.getProperties().length === 0) return writer.document(type);
    const keys = type.getProperties().map((key) => [key, this.#checker.getTypeOfSymbol(key)] as const);
    return writer.documentOf(keys);
  }

  /**
   * The JSON Schema of an object with the values of channels, by the names of the channels; null if the type has no
   * channels.
   */
  #channels(type: ts.Type | undefined): JsonObject | null {
    if (type === undefined || this.#saysNothing(type)) return null;
    const keys = type.getProperties().flatMap((key) => {
      const channel = this.#checker.getTypeOfSymbol(key);
      // `Annotation<string>` is the function that makes the channel.
      const made = channel.getCallSignatures().at(-1)?.getReturnType();
      const value = this.#member(made ?? channel, "ValueType");
      return value === undefined ? [] : [[key, value] as const];
    });
    return keys.length === 0 ? null : new SchemaWriter(this.#ts, this.#program).documentOf(keys);
  }

  /**
   * True for a type without information: `any`, `unknown`, `never`, `undefined`, or an object type without
   * named properties.
   */
  #saysNothing(type: ts.Type): boolean {
    const { TypeFlags } = this.#ts;
    if (type.flags & (TypeFlags.Any | TypeFlags.Unknown | TypeFlags.Never | TypeFlags.Undefined)) return true;
    return (type.flags & TypeFlags.Object) !== 0 && type.getProperties().length === 0;
  }

  // --- finding the calls that add nodes ---

  /** Finds the nodes with subgraphs. `at`: the expression or declaration that makes the graph. */
  *#subgraphs(at: ts.Node): Generator<Subgraph> {
    const seen = new Set<ts.Node>();
    for (const call of this.#addNodeCalls(at, seen)) {
      for (const { name, action, options } of this.#nodesOf(call)) {
        const graph = this.#subgraphOf(action, options);
        if (graph !== undefined) yield { node: name, ...graph };
      }
    }
  }

  /** The calls of `addNode` and `addSequence` that build a graph. `seen` prevents endless recursion. */
  *#addNodeCalls(at: ts.Node | undefined, seen: Set<ts.Node>): Generator<ts.CallExpression> {
    const ts = this.#ts;
    if (at === undefined || seen.has(at)) return;
    seen.add(at);
    const node = unwrapped(ts, at);
    if (ts.isAwaitExpression(node)) yield* this.#addNodeCalls(node.expression, seen);
    else if (ts.isVariableDeclaration(node)) {
      yield* this.#addNodeCalls(node.initializer, seen);
      yield* this.#callsInStatements(node, seen);
    } else if (ts.isExportAssignment(node)) yield* this.#addNodeCalls(node.expression, seen);
    else if (ts.isFunctionLike(node)) {
      for (const returned of this.#returnsOf(node)) yield* this.#addNodeCalls(returned, seen);
    } else if (ts.isIdentifier(node)) yield* this.#addNodeCalls(this.#declarationOf(node), seen);
    else if (ts.isConditionalExpression(node)) {
      yield* this.#addNodeCalls(node.whenTrue, seen);
      yield* this.#addNodeCalls(node.whenFalse, seen);
    } else if (ts.isCallExpression(node)) {
      const { expression: callee } = node;
      if (!ts.isPropertyAccessExpression(callee)) return yield* this.#addNodeCalls(callee, seen);
      if (callee.name.text === "addNode" || callee.name.text === "addSequence") yield node;
      yield* this.#addNodeCalls(callee.expression, seen);
    }
  }

  /**
   * The `addNode` and `addSequence` calls in statements that begin with this variable, such as
   * `builder.addNode(...)`.
   */
  *#callsInStatements(variable: ts.VariableDeclaration, seen: Set<ts.Node>): Generator<ts.CallExpression> {
    const ts = this.#ts;
    const symbol = this.#checker.getSymbolAtLocation(variable.name);
    const found: ts.Expression[] = [];
    const visit = (node: ts.Node): void => {
      if (ts.isExpressionStatement(node) && this.#variableOf(node.expression) === symbol)
        found.push(node.expression);
      ts.forEachChild(node, visit);
    };
    if (symbol !== undefined) visit(variable.getSourceFile());
    for (const expression of found) yield* this.#addNodeCalls(expression, seen);
  }

  /** The variable at the start of a chain of calls; undefined if the chain starts with something else. */
  #variableOf(expression: ts.Expression): ts.Symbol | undefined {
    const ts = this.#ts;
    let at: ts.Expression = expression;
    while (ts.isCallExpression(at) || ts.isPropertyAccessExpression(at) || ts.isParenthesizedExpression(at))
      at = at.expression;
    return ts.isIdentifier(at) ? this.#checker.getSymbolAtLocation(at) : undefined;
  }

  #declarationOf(name: ts.Identifier): ts.Declaration | undefined {
    const symbol = this.#checker.getSymbolAtLocation(name);
    return symbol && this.#resolved(symbol).valueDeclaration;
  }

  #resolved(symbol: ts.Symbol): ts.Symbol {
    return symbol.flags & this.#ts.SymbolFlags.Alias ? this.#checker.getAliasedSymbol(symbol) : symbol;
  }

  #returnsOf(made: ts.SignatureDeclaration): readonly ts.Expression[] {
    const ts = this.#ts;
    const body = "body" in made ? made.body : undefined;
    if (body === undefined) return [];
    if (!ts.isBlock(body)) return ts.isExpression(body) ? [body] : [];
    const found: ts.Expression[] = [];
    const visit = (node: ts.Node): void => {
      if (ts.isFunctionLike(node)) return;
      if (ts.isReturnStatement(node) && node.expression !== undefined) found.push(node.expression);
      ts.forEachChild(node, visit);
    };
    visit(body);
    return found;
  }

  /** The nodes that one call adds, by name. The call may have a name and an action, a list, or an object. */
  *#nodesOf(call: ts.CallExpression): Generator<{
    readonly name: string;
    readonly action: ts.Expression;
    readonly options: ts.Expression | undefined;
  }> {
    const ts = this.#ts;
    const [first, action, options] = call.arguments;
    if (first === undefined) return;
    if (ts.isArrayLiteralExpression(first)) {
      for (const entry of first.elements) {
        if (!ts.isArrayLiteralExpression(entry)) continue;
        const [key, value, more] = entry.elements;
        const name = this.#literalText(key);
        if (name !== undefined && value !== undefined) yield { name, action: value, options: more };
      }
    } else if (ts.isObjectLiteralExpression(first)) {
      for (const member of first.properties) {
        const name = member.name && ts.isPropertyName(member.name) ? memberName(ts, member.name) : undefined;
        if (name === undefined) continue;
        if (ts.isPropertyAssignment(member)) yield { name, action: member.initializer, options: undefined };
        else if (ts.isShorthandPropertyAssignment(member))
          yield { name, action: member.name, options: undefined };
      }
    } else {
      const name = this.#literalText(first);
      if (name !== undefined && action !== undefined) yield { name, action, options };
    }
  }

  /** The string that an expression evaluates to, if its type is a string literal; undefined otherwise. */
  #literalText(expression: ts.Expression | undefined): string | undefined {
    const type = expression && this.#checker.getTypeAtLocation(expression);
    return type?.isStringLiteral() ? type.value : undefined;
  }

  /**
   * The subgraph of a node: the node itself if it is a graph, else the first graph in its options, else the first graph
   * that its function mentions; undefined if there is none.
   */
  #subgraphOf(
    action: ts.Expression,
    options: ts.Expression | undefined,
  ): Pick<Subgraph, "graph" | "type"> | undefined {
    const ts = this.#ts;
    return (
      this.#asGraph(action) ??
      this.#subgraphOption(options) ??
      this.#subgraphUsedIn(this.#functionOf(unwrapped(ts, action)))
    );
  }

  #asGraph(expression: ts.Expression): Pick<Subgraph, "graph" | "type"> | undefined {
    const type = this.#checker.getTypeAtLocation(expression);
    if (type.getCallSignatures().length > 0) return undefined;
    const graph = this.#graphType(type);
    return graph && { graph: expression, type: graph };
  }

  /** The first subgraph in the option `{ subgraphs: [graph] }` of a node; undefined if there is none. */
  #subgraphOption(options: ts.Expression | undefined): Pick<Subgraph, "graph" | "type"> | undefined {
    const ts = this.#ts;
    if (options === undefined || !ts.isObjectLiteralExpression(options)) return undefined;
    for (const member of options.properties) {
      if (!ts.isPropertyAssignment(member) || memberName(ts, member.name) !== "subgraphs") continue;
      if (!ts.isArrayLiteralExpression(member.initializer)) continue;
      const [first] = member.initializer.elements;
      if (first !== undefined) return this.#asGraph(first);
    }
    return undefined;
  }

  #functionOf(action: ts.Node): ts.Node | undefined {
    const ts = this.#ts;
    if (ts.isFunctionLike(action)) return action;
    const declared = ts.isIdentifier(action) ? this.#declarationOf(action) : undefined;
    if (declared === undefined || !ts.isVariableDeclaration(declared)) return declared;
    return declared.initializer;
  }

  #subgraphUsedIn(body: ts.Node | undefined): Pick<Subgraph, "graph" | "type"> | undefined {
    const ts = this.#ts;
    if (body === undefined || !ts.isFunctionLike(body)) return undefined;
    const visit = (node: ts.Node): Pick<Subgraph, "graph" | "type"> | undefined =>
      (ts.isIdentifier(node) && ts.isExpression(node) && !ts.isParameter(node.parent)
        ? this.#asGraph(node)
        : undefined) ?? ts.forEachChild(node, visit);
    return ts.forEachChild(body, visit);
  }
}

function memberName(ts: Compiler, name: ts.PropertyName): string | undefined {
  return ts.isIdentifier(name) || ts.isStringLiteralLike(name) ? name.text : undefined;
}

/** The expression without parentheses and type assertions. */
function unwrapped(ts: Compiler, node: ts.Node): ts.Node {
  let at = node;
  while (
    ts.isParenthesizedExpression(at) ||
    ts.isAsExpression(at) ||
    ts.isSatisfiesExpression(at) ||
    ts.isNonNullExpression(at)
  )
    at = at.expression;
  return at;
}
