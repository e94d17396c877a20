#include "runtime/schema_parser.h"

#include <charconv>
#include <cstring>
#include <span>

#include "runtime/error.h"
#include "runtime/schema_types.h"

namespace tn {
namespace {

enum class TokenKind : uint8_t {
  kEof,
  kIdent,
  kKeyword,
  kTrue,
  kFalse,
  kNone,
  kNoneType,
  kNumber,
  kString,
  kArrow,
  kDots,
  kChar
};

struct Token {
  TokenKind kind = TokenKind::kEof;
  size_t start = 0;
  size_t end = 0;
};

bool is_ident_start(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

// Words of TorchScript's grammar, which no argument can be called.
constexpr std::string_view kKeywords[] = {"Ellipsis", "and",  "as",   "assert", "break",  "class",  "continue", "def",
                                          "del",      "elif", "else", "for",    "global", "if",     "import",   "in",
                                          "is",       "not",  "or",   "pass",   "raise",  "return", "while",    "with"};

TokenKind word_kind(std::string_view word) {
  // No word of the grammar is longer, or starts with another letter; most words of schemas fail here.
  constexpr uint32_t kFirstLetters = 1u << ('a' - 'a') | 1u << ('b' - 'a') | 1u << ('c' - 'a') | 1u << ('d' - 'a') |
                                     1u << ('e' - 'a') | 1u << ('f' - 'a') | 1u << ('g' - 'a') | 1u << ('i' - 'a') |
                                     1u << ('n' - 'a') | 1u << ('o' - 'a') | 1u << ('p' - 'a') | 1u << ('r' - 'a') |
                                     1u << ('t' - 'a') | 1u << ('w' - 'a');
  if (word.size() > 8) return TokenKind::kIdent;
  if (word[0] >= 'a' && !(kFirstLetters >> (word[0] - 'a') & 1)) return TokenKind::kIdent;
  if (word == "None") return TokenKind::kNone;
  if (word == "True") return TokenKind::kTrue;
  if (word == "False") return TokenKind::kFalse;
  if (word == "NoneType") return TokenKind::kNoneType;
  for (std::string_view keyword : kKeywords) {
    if (word == keyword) return TokenKind::kKeyword;
  }
  return TokenKind::kIdent;
}

class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {
    current_ = scan(0);
    next_ = scan(current_.end);
  }

  const Token& current() const { return current_; }
  std::string_view text(const Token& token) const { return text_.substr(token.start, token.end - token.start); }
  bool at(TokenKind kind) const { return current_.kind == kind; }
  bool at(char c) const { return at(current_, c); }
  bool next_at(char c) const { return at(next_, c); }
  bool at_word(std::string_view word) const { return current_.kind == TokenKind::kIdent && text(current_) == word; }

  Token take() {
    Token taken = current_;
    current_ = next_;
    if (next_.kind != TokenKind::kEof) next_ = scan(next_.end);
    return taken;
  }
  template <class K>
  bool take_if(K kind) {
    if (!at(kind)) return false;
    take();
    return true;
  }
  Token expect(TokenKind kind, std::string_view what) {
    if (!at(kind)) unexpected(what);
    return take();
  }
  void expect(char c) {
    if (!at(c)) unexpected(std::string_view(&c, 1));
    take();
  }

  [[noreturn]] void unexpected(std::string_view what) const { unexpected(what, current_); }
  [[noreturn]] void error(std::string_view what, const Token& where) const {
    fail(ErrorKind::Runtime, "\n", what, ":\n", marked(where));
  }

 private:
  bool at(const Token& token, char c) const { return token.kind == TokenKind::kChar && text_[token.start] == c; }

  [[noreturn]] void unexpected(std::string_view what, const Token& found) const {
    fail(ErrorKind::Runtime, "expected ", what, " but found '", describe(found), "' here:\n", marked(found));
  }

  std::string_view describe(const Token& token) const {
    switch (token.kind) {
      case TokenKind::kEof: return "eof";
      case TokenKind::kIdent: return "ident";
      case TokenKind::kNumber: return "number";
      case TokenKind::kString: return "string_literal";
      case TokenKind::kArrow: return "arrow";
      case TokenKind::kDots: return "dots";
      default: return text(token);
    }
  }

  // The text, with the line under the token marked. Nothing is marked at the end, or where the token is all of it.
  std::string marked(const Token& token) const {
    std::string out(text_);
    if (token.end - token.start == text_.size() || token.start == text_.size()) return out;
    size_t line_start = text_.rfind('\n', token.start) + 1;  // npos + 1 is 0
    size_t line_end = std::min(text_.find('\n', token.start), text_.size());
    size_t column = token.start - line_start;
    size_t width = std::min(token.end, line_end) - token.start;
    out = text_.substr(0, line_end);
    out += '\n';
    out.append(column, ' ').append(width, '~').append(" <--- HERE\n");
    out += text_.substr(std::min(line_end + 1, text_.size()));
    if (out.back() != '\n') out += '\n';
    return out;
  }

  Token scan(size_t pos) const {
    size_t size = text_.size();
    for (; pos < size; ++pos) {
      if (text_[pos] == '#') {
        while (pos < size && text_[pos] != '\n') ++pos;
        if (pos == size) break;
      } else if (!is_space(text_[pos])) {
        break;
      }
    }
    if (pos == size) return {TokenKind::kEof, size, size};
    char c = text_[pos];
    size_t end = pos + 1;
    if (is_ident_start(c)) {
      while (end < size && (is_ident_start(text_[end]) || is_digit(text_[end]))) ++end;
      return {word_kind(text_.substr(pos, end - pos)), pos, end};
    }
    if (is_digit(c) || (c == '.' && end < size && is_digit(text_[end]))) {
      double ignored = 0;
      auto parsed = std::from_chars(text_.data() + pos, text_.data() + size, ignored);
      end = static_cast<size_t>(parsed.ptr - text_.data());
      if (end < size && text_[end] == 'j') ++end;
      return {TokenKind::kNumber, pos, end};
    }
    if (c == '"' || c == '\'') return scan_string(pos);
    if (text_.substr(pos, 2) == "->") return {TokenKind::kArrow, pos, pos + 2};
    if (text_.substr(pos, 3) == "...") return {TokenKind::kDots, pos, pos + 3};
    Token token{TokenKind::kChar, pos, end};
    if (!std::strchr("+-*/%@()[]:,={}><.?!&^|~", c)) unexpected("a valid token", token);
    return token;
  }

  // One or three quotes; a backslash takes the next character along.
  Token scan_string(size_t pos) const {
    std::string_view quote = text_.substr(pos, 1);
    if (text_.size() - pos >= 3 && text_[pos + 1] == quote[0] && text_[pos + 2] == quote[0])
      quote = text_.substr(pos, 3);
    size_t end = pos + quote.size();
    while (end < text_.size() && text_.substr(end, quote.size()) != quote) {
      if (text_[end] == '\n' && quote.size() == 1) break;
      end += text_[end] == '\\' ? 2 : 1;
    }
    if (text_.substr(std::min(end, text_.size()), quote.size()) != quote) {
      unexpected("a valid token", {TokenKind::kChar, pos, pos + 1});
    }
    return {TokenKind::kString, pos, end + quote.size()};
  }

  std::string_view text_;
  Token current_;
  Token next_;
};

struct NamedKind {
  std::string_view name;
  TypeKind kind;
};
// In order of use in upstream's schemas.
constexpr NamedKind kBaseTypes[] = {
    {"int", TypeKind::kInt},
    {"bool", TypeKind::kBool},
    {"float", TypeKind::kFloat},
    {"SymInt", TypeKind::kSymInt},
    {"Scalar", TypeKind::kNumber},
    {"str", TypeKind::kString},
    {"ScalarType", TypeKind::kScalarType},
    {"Device", TypeKind::kDeviceObj},
    {"Layout", TypeKind::kLayout},
    {"Generator", TypeKind::kGenerator},
    {"complex", TypeKind::kComplex},
    {"MemoryFormat", TypeKind::kMemoryFormat},
    {"Any", TypeKind::kAny},
    {"Storage", TypeKind::kStorage},
    {"SymBool", TypeKind::kSymBool},
    {"Stream", TypeKind::kStreamObj},
    {"AnyEnumType", TypeKind::kAnyEnum},
    {"AnyClassType", TypeKind::kAnyClass},
    {"QScheme", TypeKind::kQScheme},
    {"Quantizer", TypeKind::kQuantizer},
    {"ConstQuantizerPtr", TypeKind::kInt},
    {"DeviceIndex", TypeKind::kInt},
    {"Capsule", TypeKind::kCapsule},
};

// Names of defaults, with the numbers of upstream's enums.
struct NamedValue {
  std::string_view name;
  int64_t value;
};
constexpr NamedValue kNamedDefaults[] = {
    {"Mean", 1},      {"contiguous_format", 0},
    {"strided", 0},   {"long", 4},
    {"int64", 4},     {"float", 6},
    {"float32", 6},   {"uint8", 0},
    {"int8", 1},      {"short", 2},
    {"int16", 2},     {"int", 3},
    {"int32", 3},     {"half", 5},
    {"float16", 5},   {"double", 7},
    {"float64", 7},   {"cfloat", 9},
    {"cdouble", 10},  {"bool", 11},
    {"bfloat16", 15},
};

// C++'s names of types that schemas spell otherwise.
constexpr std::string_view kForeignInt =
    "Use `SymInt` or `int` instead of `int64_t` in an operator's schema string. `SymInt` corresponds to c10::SymInt in "
    "C++ while `int` in schema corresponds to the int64_t type in C++.";
constexpr std::string_view kForeignFloat =
    "Use `float` instead of `double` in an operator's schema string. `float` in schema corresponds to the double type "
    "in C++";
constexpr std::string_view kUnknownType =
    "unknown type specifier. Common valid schema types include Tensor, SymInt, int, float, bool, Scalar; for a full "
    "list, "
    "please see https://github.com/pytorch/pytorch/blob/main/aten/src/ATen/native/README.md#func ";

// A type as written, with its annotation.
struct AnnotatedType {
  TypePtr type;
  std::unique_ptr<AliasInfo> alias;
};

class Parser {
 public:
  Parser(std::string_view text, bool allow_typevars) : lexer_(text), allow_typevars_(allow_typevars) {}

  OperatorName name() {
    OperatorName result;
    result.name = lexer_.text(ident());
    if (lexer_.take_if(':')) {
      lexer_.expect(':');
      (result.name += "::") += lexer_.text(ident());
    }
    if (lexer_.take_if('.')) result.overload_name = lexer_.text(ident());
    // Python has both as attributes of the packet of overloads: `default` is the overload without a name.
    TN_CHECK(result.overload_name != "default" && !result.overload_name.starts_with("__"), result.overload_name,
             " is not a legal overload name for aten operators");
    return result;
  }

  bool at_arguments() const { return lexer_.at('('); }
  void end() {
    if (!lexer_.at(TokenKind::kEof)) lexer_.unexpected("eof");
  }

  SchemaRef schema(OperatorName name) {
    std::vector<Argument> arguments, returns;
    bool is_vararg = false, is_varret = false, kwarg_only = false;
    list('(', ',', ')', [&] {
      if (is_vararg) lexer_.error("... must be the last element of the argument list", lexer_.current());
      if (lexer_.take_if('*')) {
        kwarg_only = true;
      } else if (lexer_.take_if(TokenKind::kDots)) {
        is_vararg = true;
      } else {
        arguments.push_back(argument(kwarg_only));
      }
    });
    lexer_.expect(TokenKind::kArrow, "arrow");
    if (lexer_.take_if(TokenKind::kDots)) {
      is_varret = true;
    } else if (lexer_.at('(')) {
      list('(', ',', ')', [&] {
        if (is_varret) lexer_.error("... must be the last element of the return list", lexer_.current());
        if (lexer_.take_if(TokenKind::kDots)) {
          is_varret = true;
        } else {
          returns.push_back(result());
        }
      });
    } else {
      returns.push_back(result());
    }
    end();
    return make_ref<FunctionSchema>(std::move(name.name), std::move(name.overload_name), std::move(arguments),
                                    std::move(returns), is_vararg, is_varret);
  }

 private:
  Token ident() { return lexer_.expect(TokenKind::kIdent, "ident"); }

  template <class F>
  void list(char begin, char separator, char end, F&& item) {
    lexer_.expect(begin);
    if (!lexer_.at(end)) {
      do {
        item();
      } while (lexer_.take_if(separator));
    }
    lexer_.expect(end);
  }

  Argument typed() {
    Argument out;
    AnnotatedType parsed = type();
    // A list with a size can stand only here, at the outermost level.
    if (lexer_.at('[')) {
      lexer_.take();
      out.size = static_cast<int32_t>(integer(lexer_.text(lexer_.expect(TokenKind::kNumber, "number"))));
      lexer_.expect(']');
      parsed.type = list_type(parsed.type);
      annotate_list(parsed);
      if (lexer_.take_if('?')) parsed.type = optional_type(parsed.type);
    }
    out.real_type = parsed.type;
    out.type = value_type(parsed.type);
    out.alias = std::move(parsed.alias);
    return out;
  }

  Argument argument(bool kwarg_only) {
    Argument out = typed();
    out.kwarg_only = kwarg_only;
    out.name = lexer_.text(ident());
    if (lexer_.take_if('=')) out.default_value = default_value(out.type, out.size);
    return out;
  }

  Argument result() {
    Argument out = typed();
    if (lexer_.at(TokenKind::kIdent)) out.name = lexer_.text(lexer_.take());
    return out;
  }

  TypePtr inner_type() { return value_type(type().type); }

  std::vector<TypePtr> inner_types() {
    std::vector<TypePtr> types;
    list('(', ',', ')', [&] { types.push_back(inner_type()); });
    return types;
  }

  TypePtr element_in_parentheses() {
    lexer_.take();
    lexer_.expect('(');
    TypePtr element = inner_type();
    lexer_.expect(')');
    return element;
  }

  AnnotatedType type() {
    AnnotatedType out{nullptr, nullptr};
    if (lexer_.at('(')) {
      out.type = tuple_type(inner_types());
    } else if (lexer_.at_word("Tensor")) {
      lexer_.take();
      out.type = simple_type(TypeKind::kTensor);
      out.alias = annotation();
    } else if (lexer_.at_word("Future")) {
      out.type = future_type(element_in_parentheses());
    } else if (lexer_.at_word("Await")) {
      out.type = await_type(element_in_parentheses());
    } else if (lexer_.at_word("RRef")) {
      out.type = rref_type(element_in_parentheses());
    } else if (lexer_.at_word("Dict")) {
      lexer_.take();
      lexer_.expect('(');
      TypePtr key = inner_type();
      lexer_.expect(',');
      TypePtr value = inner_type();
      lexer_.expect(')');
      out.type = dict_type(key, value);
      out.alias = annotation();
    } else if (lexer_.at_word("Union")) {
      lexer_.take();
      out.type = union_type(inner_types());
    } else if (lexer_.at_word("__torch__")) {
      out.type = custom_class();
    } else {
      out.type = base_type();
      out.alias = annotation();
    }
    while (true) {
      if (lexer_.at('[') && lexer_.next_at(']')) {
        lexer_.take();
        lexer_.take();
        out.type = list_type(out.type);
        annotate_list(out);
      } else if (lexer_.take_if('?')) {
        out.type = optional_type(out.type);
        // infer_schema writes lists of optional tensors as Tensor?(a!)[].
        if (!out.alias && lexer_.at('(')) out.alias = annotation();
      } else {
        return out;
      }
    }
  }

  TypePtr base_type() {
    if (lexer_.at(TokenKind::kNone) || lexer_.at(TokenKind::kNoneType)) {
      lexer_.take();
      return simple_type(TypeKind::kNone);
    }
    Token token = ident();
    std::string_view word = lexer_.text(token);
    for (const NamedKind& base : kBaseTypes) {
      if (base.name == word) return simple_type(base.kind);
    }
    if (lexer_.at('.')) {
      std::string dotted(word);
      while (lexer_.take_if('.')) (dotted += '.') += lexer_.text(ident());
      if (opaque_type_hook && opaque_type_hook(dotted)) return simple_type(TypeKind::kPyObject);
      lexer_.error(kUnknownType, token);
    }
    // How a registered class prints; users write its own name.
    if (allow_typevars_ && word == "PyObject") return simple_type(TypeKind::kPyObject);
    if (!allow_typevars_ || word[0] < 'a' || word[0] > 'z')
      lexer_.error(word == "int64_t" ? kForeignInt : word == "double" ? kForeignFloat : kUnknownType, token);
    return var_type(word);
  }

  TypePtr custom_class() {
    lexer_.take();
    std::string name = "__torch__";
    for (std::string_view expected : {"torch", "classes"}) {
      lexer_.expect('.');
      Token token = ident();
      if (lexer_.text(token) != expected) {
        lexer_.error(str("Expected classes namespace but got ", lexer_.text(token)), token);
      }
      (name += '.') += expected;
    }
    size_t prefix = name.size() + 1;
    Token last;
    for (int part = 0; part < 2; ++part) {
      lexer_.expect('.');
      last = ident();
      (name += '.') += lexer_.text(last);
    }
    if (!known_class(name)) {
      lexer_.error(str("Unknown custom class type ", name.substr(prefix), ". Please ensure it is registered."), last);
    }
    return class_type(name);
  }

  void alias_set(AliasSet& set) {
    do {
      if (lexer_.take_if('*')) {
        set.add("*");
        return;
      }
      set.add(lexer_.text(ident()));
    } while (lexer_.take_if('|'));
  }

  std::unique_ptr<AliasInfo> annotation() {
    std::unique_ptr<AliasInfo> out;
    if (lexer_.take_if('(')) {
      out = std::make_unique<AliasInfo>();
      alias_set(out->before);
      out->is_write = lexer_.take_if('!');
      if (lexer_.take_if(TokenKind::kArrow)) {
        alias_set(out->after);
      } else {
        out->after = out->before;
      }
      lexer_.expect(')');
    } else if (lexer_.take_if('!')) {
      // A set of its own, which holds only until the write.
      out = std::make_unique<AliasInfo>();
      out->before.add(str("$", fresh_sets_++));
      out->is_write = true;
    }
    return out;
  }

  // A list has its own annotation; without one it takes its elements' write along, in no set.
  void annotate_list(AnnotatedType& out) {
    std::unique_ptr<AliasInfo> container = annotation();
    if (out.alias) {
      if (!container) {
        container = std::make_unique<AliasInfo>();
        container->is_write = out.alias->is_write;
      }
      container->contained.push_back(std::move(*out.alias));
    }
    out.alias = std::move(container);
  }

  int64_t integer(std::string_view digits, bool negative = false) {
    std::string text = negative ? "-" : "";
    text += digits;
    int64_t value = 0;
    auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
    TN_CHECK_AS(Index, parsed.ec == std::errc(), "stoll");
    return value;
  }

  double real(std::string_view digits, bool negative) {
    double value = 0;
    auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    TN_CHECK_AS(Index, parsed.ec == std::errc(), "stod");
    return negative ? -value : value;
  }

  DefaultValue number(TypeKind kind) {
    bool negative = lexer_.take_if('-');
    std::string_view digits = lexer_.text(lexer_.expect(TokenKind::kNumber, "number"));
    if (digits.back() == 'j') return std::complex<double>(0, real(digits.substr(0, digits.size() - 1), negative));
    if (kind == TypeKind::kComplex) return std::complex<double>(real(digits, negative), 0);
    if (kind == TypeKind::kFloat || digits.find_first_of(".eE") != std::string_view::npos)
      return real(digits, negative);
    return integer(digits, negative);
  }

  DefaultValue constant(TypeKind kind) {
    switch (lexer_.current().kind) {
      case TokenKind::kTrue: lexer_.take(); return true;
      case TokenKind::kFalse: lexer_.take(); return false;
      case TokenKind::kNone: lexer_.take(); return std::monostate();
      case TokenKind::kString: return string_literal();
      case TokenKind::kIdent: {
        std::string_view word = lexer_.text(lexer_.take());
        for (const NamedValue& named : kNamedDefaults) {
          if (named.name == word) return named.value;
        }
        lexer_.error("invalid numeric default value", lexer_.current());
      }
      default: return number(kind);
    }
  }

  std::string string_literal() {
    Token token = lexer_.take();
    std::string_view body = lexer_.text(token);
    size_t quotes = body.size() >= 6 && body[0] == body[1] && body[1] == body[2] ? 3 : 1;
    body = body.substr(quotes, body.size() - 2 * quotes);
    std::string out;
    for (size_t i = 0; i < body.size(); ++i) {
      if (body[i] != '\\') {
        out += body[i];
        continue;
      }
      char c = body[++i];
      switch (c) {
        case '\\':
        case '\'':
        case '"': out += c; break;
        case 'a': out += '\a'; break;
        case 'b': out += '\b'; break;
        case 'f': out += '\f'; break;
        case 'n': out += '\n'; break;
        case 'r': out += '\r'; break;
        case 't': out += '\t'; break;
        case 'v': out += '\v'; break;
        case '\n': break;
        case 'x': lexer_.error("unsupported hex specifier", token);
        case 'u':
        case 'U': lexer_.error("unsupported unicode specifier", token);
        default: {
          int value = 0, count = 0;
          for (; count < 3 && i + count < body.size() && body[i + count] >= '0' && body[i + count] < '8'; ++count) {
            value = value * 8 + (body[i + count] - '0');
          }
          if (count == 0 || value > 255) lexer_.error(" ill formed octal specifier", token);
          out += static_cast<char>(value);
          i += static_cast<size_t>(count) - 1;
        }
      }
    }
    return out;
  }

  template <class T, class Stored = T>
  DefaultValue all_of(const std::vector<DefaultValue>& values) {
    std::vector<Stored> out;
    out.reserve(values.size());
    for (const DefaultValue& value : values) {
      const T* same = std::get_if<T>(&value);
      if (!same)
        fail(ErrorKind::Runtime, "schema: expected list elements of one type, got another (default of a list)");
      out.push_back(static_cast<Stored>(*same));
    }
    return out;
  }

  DefaultValue to_list(TypeKind element, const Token& where, const std::vector<DefaultValue>& values) {
    switch (element) {
      case TypeKind::kComplex: return all_of<std::complex<double>>(values);
      case TypeKind::kFloat: return all_of<double>(values);
      case TypeKind::kInt: return all_of<int64_t>(values);
      case TypeKind::kBool: return all_of<bool, Bit>(values);
      default: lexer_.error("lists are only supported for float, int and complex types", where);
    }
  }

  DefaultValue default_value(TypePtr type, std::optional<int32_t> size) {
    Token where = lexer_.current();
    switch (type->kind()) {
      case TypeKind::kTensor:
      case TypeKind::kGenerator:
      case TypeKind::kQuantizer: lexer_.expect(TokenKind::kNone, "None"); return std::monostate();
      case TypeKind::kString:
      case TypeKind::kOptional:
      case TypeKind::kNumber:
      case TypeKind::kInt:
      case TypeKind::kBool:
      case TypeKind::kFloat:
      case TypeKind::kComplex: return constant(type->kind());
      case TypeKind::kDeviceObj:
        if (!lexer_.at(TokenKind::kString)) lexer_.unexpected("string_literal");
        return Device::parse(string_literal());
      case TypeKind::kList: {
        TypeKind element = type->element()->kind();
        if (lexer_.at(TokenKind::kIdent)) lexer_.unexpected("None");
        std::vector<DefaultValue> values;
        if (size && !lexer_.at('[')) {
          values.assign(static_cast<size_t>(*size), constant(element));
        } else {
          list('[', ',', ']', [&] { values.push_back(constant(element)); });
        }
        return to_list(element, where, values);
      }
      default: lexer_.error("unexpected type, file a bug report", where);
    }
  }

  Lexer lexer_;
  bool allow_typevars_;
  int fresh_sets_ = 0;
};

}  // namespace

SchemaRef parse_schema(std::string_view text, bool allow_typevars) {
  Parser parser(text, allow_typevars);
  OperatorName name = parser.name();
  if (!parser.at_arguments()) {
    parser.end();
    fail(ErrorKind::Runtime, "Tried to parse a function schema but only the operator name was given");
  }
  return parser.schema(std::move(name));
}

constinit OpaqueTypeHook opaque_type_hook = nullptr;

OperatorName parse_operator_name(std::string_view text) {
  Parser parser(text, true);
  OperatorName name = parser.name();
  if (parser.at_arguments()) fail(ErrorKind::Runtime, "Tried to parse an operator name but function schema was given");
  parser.end();
  return name;
}

}  // namespace tn
